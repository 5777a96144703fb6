"""The programs that a compiler has to compile, link and run before it counts as found."""

from __future__ import annotations

# Each prints what only the running program knows: the ABI it was compiled for.
C_PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#ifndef _WIN32
#include <pthread.h>
static void *work(void *value) { *(double *)value = sqrt(*(double *)value); return 0; }
#endif
int main(int argc, char **argv) {
    double value = 8.0 + argc;
    (void)argv;
#ifdef _WIN32
    value = sqrt(value);
#else
    pthread_t thread;
    if (pthread_create(&thread, 0, work, &value) != 0) return 2;
    pthread_join(thread, 0);
#endif
    printf("pointer=%d\n", (int)sizeof(void *));
    return value == 3.0 ? 0 : 3;
}
"""

CXX_PROGRAM = r"""
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
#if __cplusplus < 201703L && !defined(_MSVC_LANG)
#error this is no C++17
#endif
static const char *machine() {
#if defined(__x86_64__) || defined(_M_X64)
    return "x86_64";
#elif defined(__aarch64__) || defined(_M_ARM64)
    return "aarch64";
#elif defined(__i386__) || defined(_M_IX86)
    return "i386";
#elif defined(__arm__)
    return "arm";
#elif defined(__riscv)
    return "riscv64";
#else
    return "";
#endif
}
int main(int argc, char **argv) {
    std::string text(argc, 'x');
    std::thread worker([&text] { text += "y"; });
    worker.join();
    auto [first, second] = std::pair(text.size(), std::filesystem::path(argv[0]).string().size());
    std::optional<std::size_t> sum = first + second;
    std::printf("machine=%s\npointer=%d\n", machine(), (int)sizeof(void *));
#if defined(__GLIBC__)
    std::printf("libc=glibc %s\n", gnu_get_libc_version());
#endif
#if defined(_LIBCPP_VERSION)
    std::printf("libstdcxx=libc++ %d\n", (int)_LIBCPP_VERSION);
#elif defined(__GLIBCXX__)
    std::printf("libstdcxx=libstdc++ %ld\n", (long)__GLIBCXX__);
#endif
#if defined(__apple_build_version__)
    std::printf("name=clang\nvendor=apple\n");
#elif defined(__clang__)
    std::printf("name=clang\n");
#elif defined(__GNUC__)
    std::printf("name=gcc\n");
#endif
#if defined(__clang__)
    std::printf("version=%d.%d.%d\n", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
    std::printf("version=%d.%d.%d\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
    return *sum > 1 ? 0 : 3;
}
"""

GOOD_SHADER = """
#version 460
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer Data { float values[]; };
void main() { values[gl_GlobalInvocationID.x] *= 2.0; }
"""

BAD_SHADER = """
#version 460
void main() { this_is_not_declared = 1; }
"""
