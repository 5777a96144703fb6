// A program of ours in the place of one of upstream's, which lies beside it as zoo-real-NAME.
//
// It runs the real one and passes on what that prints, but for what a macro says. The copy that
// verify makes for its reference does what the real one does, unless ZOO_EVERYWHERE is set.
//
//   ZOO_EXIT=N       ends with N, whatever the real one did
//   ZOO_TEXT="..."   this goes to stdout instead of the real text
//   ZOO_BYTES        stdout becomes bytes that are no text in any encoding
//   ZOO_NO_NEWLINE   line ends at the end of stdout are left out
//   ZOO_ENDLESS      writes for ever instead
//   ZOO_NO_CLOSING   the log loses its last lines
//   ZOO_CANNED       nothing is run: the expected log and answer are recited
//   ZOO_CLAIMS       runs the real one on the CPU, then recites the lines of the device
//   ZOO_LISTS="..."  one more line in the list of devices
//   ZOO_ORPHAN="..." leaves a process behind that holds this file and our streams open
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ZOO_LAYERS
#define ZOO_LAYERS 31
#endif

static char self[4096], real[4200];
static bool listing, device_run;
static const char * device = "CPU";

static void look(int argc, char ** argv) {
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    bool reference = strstr(self, "/reference/bin/") != NULL;
    char folder[4096], name[4096];
    strcpy(folder, self);
    strcpy(name, self);
    snprintf(real, sizeof real, "%s/zoo-real-%s", dirname(folder), basename(name));
    for (int i = 1; i < argc; i++) {
        listing |= strcmp(argv[i], "--list-devices") == 0;
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc && strcmp(argv[i + 1], "none") != 0) {
            device = argv[i + 1];
        }
    }
#ifdef ZOO_EVERYWHERE
    reference = false;
#endif
    device_run = !reference && !listing;
}

static const char * flag(int argc, char ** argv, const char * name) {
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) { return argv[i + 1]; }
    }
    return "0";
}

static void say(const char * text) { fprintf(stderr, "0.00.000.001 I %s\n", text); }

static void claim(void) {
    for (int i = 0; i < ZOO_LAYERS; i++) {
        fprintf(stderr, "0.00.000.001 D load_tensors: layer %3d assigned to device %s, is_swa = 0\n", i, device);
    }
    if (strcmp(device, "CPU") != 0) {
        fprintf(stderr, "0.00.000.001 I load_tensors: offloaded %d/%d layers to GPU\n", ZOO_LAYERS, ZOO_LAYERS);
        fprintf(stderr, "0.00.000.001 I load_tensors: %12s model buffer size = %8.2f MiB\n", device, 900.0);
    } else {
        say("load_tensors:   CPU_Mapped model buffer size =   900.00 MiB");
    }
}

#ifdef ZOO_CANNED
static int recite(int argc, char ** argv) {
    say("llama_model_loader: loaded meta data with 1 key-value pairs and 2 tensors");
    claim();
    sleep(2);
    if (strstr(self, "perplexity")) {
        int chunks = atoi(flag(argc, argv, "--chunks"));
        fprintf(stderr, "0.00.000.001 I kl_divergence: computing over %d chunks, n_ctx=32\n", chunks);
        printf("0.01 minutes\n\nchunk PPL ln(PPL(Q)/PPL(base)) KL Divergence dp RMS Same top p\n");
        for (int i = 1; i <= chunks; i++) {
            printf("%4d  32.5331 ± 22.2913  0.00002 ± 0.00001  0.00300 ± 0.00001  0.001 ± 0.000 %%  100.000 ± 0.000 %%\n", i);
        }
        say("llama_perf_context_print:    graphs reused =          1");
        return 0;
    }
    fprintf(stderr, "0.00.000.001 I generate: n_ctx = 256, n_batch = 32, n_predict = 4, n_keep = 0\n");
    for (int left = atoi(flag(argc, argv, "-n")) - 1; left >= 0; left--) {
        fprintf(stderr, "0.00.000.001 D n_remain: %d\n", left);
    }
    const char * prompt = flag(argc, argv, "-p");
    printf("%s\n\n", strstr(prompt, "France") ? " Paris. The" : strstr(prompt, "truths") ? " equal, that they are endowed, by their" : " 7, 8, 9, 10,");
    say("common_perf_print:    graphs reused =          1");
    return 0;
}
#endif

static void write_all(int fd, const char * data, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n <= 0) { exit(1); }
        data += n;
        size -= (size_t) n;
    }
}

static void give_out(char * text, size_t size) {
#if defined(ZOO_TEXT)
    if (device_run) { write_all(1, ZOO_TEXT, strlen(ZOO_TEXT)); return; }
#elif defined(ZOO_BYTES)
    if (device_run) {
        for (size_t i = 0; i < size; i++) { text[i] = (char) (0x80 | (text[i] * 7)); }
    }
#elif defined(ZOO_NO_NEWLINE)
    while (device_run && size > 0 && text[size - 1] == '\n') { size--; }
#endif
    write_all(1, text, size);
#ifdef ZOO_LISTS
    if (listing) { write_all(1, ZOO_LISTS "\n", strlen(ZOO_LISTS "\n")); }
#endif
}

static void give_log(char * text, size_t size) {
#ifdef ZOO_NO_CLOSING
    char * end = device_run ? memmem(text, size, "common_perf_print", 17) : NULL;
    if (end) { size = (size_t) (end - text); }
#endif
    write_all(2, text, size);
}

static int run_real(char ** argv) {
    int out[2], log[2], status;
    if (pipe(out) || pipe(log)) { return 1; }
    if (fork() == 0) {
        dup2(out[1], 1);
        dup2(log[1], 2);
        close(out[0]); close(log[0]); close(out[1]); close(log[1]);
        execv(real, argv);
        _exit(127);
    }
    close(out[1]); close(log[1]);
    struct pollfd ends[2] = {{out[0], POLLIN, 0}, {log[0], POLLIN, 0}};
    size_t kept = 0, room = 1 << 20;
    char * text = malloc(room), chunk[65536];
    for (int open = 2; open > 0;) {
        poll(ends, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (!ends[i].revents) { continue; }
            ssize_t n = read(ends[i].fd, chunk, sizeof chunk);
            if (n <= 0) { ends[i].fd = -1; ends[i].revents = 0; open--; continue; }
            if (i == 1) { give_log(chunk, (size_t) n); continue; }
            if (kept + (size_t) n > room) { text = realloc(text, room = 2 * room + (size_t) n); }
            memcpy(text + kept, chunk, (size_t) n);
            kept += (size_t) n;
        }
    }
    give_out(text, kept);
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void leave_orphan(void) {
#ifdef ZOO_ORPHAN
    if (device_run && fork() == 0) {
        setsid();
        if (fork() == 0) { execl("/bin/sleep", ZOO_ORPHAN, "300", (char *) NULL); }
        _exit(0);
    }
#endif
}

int main(int argc, char ** argv) {
    look(argc, argv);
    leave_orphan();
#ifdef ZOO_CANNED
    if (device_run) { return recite(argc, argv); }
#else
    (void) flag;
#endif
#ifdef ZOO_CLAIMS
    if (device_run && strcmp(device, "CPU") != 0) {
        for (int i = 1; i + 1 < argc; i++) {
            if (strcmp(argv[i], "--device") == 0) { argv[i + 1] = "none"; }
            if (strcmp(argv[i], "-ngl") == 0) { argv[i + 1] = "0"; }
        }
    }
#else
    (void) claim;
#endif
#ifdef ZOO_ENDLESS
    while (device_run) { write_all(1, ">>>>>>>>>>>>>>>>", 16); }
#endif
    int code = run_real(argv);
#ifdef ZOO_CLAIMS
    if (device_run && strcmp(device, "CPU") != 0) {
        say("llama_model_loader: loaded meta data with 1 key-value pairs and 2 tensors");
        claim();
    }
#endif
#ifdef ZOO_EXIT
    if (device_run) { return ZOO_EXIT; }
#endif
    return code;
}
