// A backend module of ours that loads the real one, forwards everything, and lies in one place.
//
// It takes the real module's own tables and puts its functions into them, so whatever is not
// named by a macro stays as it was. Without any macro it is honest: that must be verified.
//
//   ZOO_AT_INIT, ZOO_AT_LIST, ZOO_AT_LOAD, ZOO_AT_FIRST, ZOO_AFTER_FIRST, ZOO_AT_EXIT
//                      what to do in that phase: HANG, SEGV, ABORT, TRAP (illegal instruction), QUIT
//   ZOO_OP, ZOO_TYPE   the operation ("MUL_MAT") and the type of its weights ("q4_1") that is wrong
//   ZOO_LEAST, ZOO_MOST    only with so many columns (tokens at a time)
//   ZOO_WRONG          what its numbers become: ZERO, NOTANUMBER, SCALED (by ZOO_SCALE), NOISE
//   ZOO_SLOWER         how many times as long everything takes
//   ZOO_API            the version of the interface that it says it has
//   ZOO_NO_DEVICE      registers none;  ZOO_TWICE  lists its first device twice
//   ZOO_NAME           how its devices are called;  ZOO_REFUSE  does not start
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wunused-function"
#include "ggml-impl.h"
#include "ggml-backend-impl.h"
#include <dlfcn.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum what { NOTHING, HANG, SEGV, ABORT, TRAP, QUIT };
enum wrong { RIGHT, ZERO, NOTANUMBER, SCALED, NOISE };

#ifndef ZOO_AT_INIT
#define ZOO_AT_INIT NOTHING
#endif
#ifndef ZOO_AT_LIST
#define ZOO_AT_LIST NOTHING
#endif
#ifndef ZOO_AT_LOAD
#define ZOO_AT_LOAD NOTHING
#endif
#ifndef ZOO_AT_FIRST
#define ZOO_AT_FIRST NOTHING
#endif
#ifndef ZOO_AFTER_FIRST
#define ZOO_AFTER_FIRST NOTHING
#endif
#ifndef ZOO_AT_EXIT
#define ZOO_AT_EXIT NOTHING
#endif
#ifndef ZOO_WRONG
#define ZOO_WRONG RIGHT
#endif
#ifndef ZOO_OP
#define ZOO_OP ""
#endif
#ifndef ZOO_TYPE
#define ZOO_TYPE ""
#endif
#ifndef ZOO_LEAST
#define ZOO_LEAST 0
#endif
#ifndef ZOO_MOST
#define ZOO_MOST 1000000000
#endif
#ifndef ZOO_SCALE
#define ZOO_SCALE 1.0f
#endif
#ifndef ZOO_SLOWER
#define ZOO_SLOWER 1
#endif

static void do_it(enum what what) {
    switch (what) {
        case NOTHING: return;
        case HANG: for (;;) { pause(); }
        case SEGV: signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); return;
        case ABORT: signal(SIGABRT, SIG_DFL); abort();
        case TRAP: signal(SIGILL, SIG_DFL); raise(SIGILL); return;
        case QUIT: _exit(3);
    }
}

static void * real_module(void) {
    static void * handle;
    if (!handle) {
        Dl_info here;
        char path[4096], folder[4096];
        dladdr((void *) real_module, &here);
        snprintf(folder, sizeof folder, "%s", here.dli_fname);
        snprintf(path, sizeof path, "%s/%s", dirname(folder), "zoo-real-module.so");
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle) { fprintf(stderr, "zoo: %s\n", dlerror()); }
    }
    return handle;
}

static enum ggml_status (*real_compute)(ggml_backend_t, struct ggml_cgraph *);
static ggml_backend_t (*real_backend)(ggml_backend_dev_t, const char *);
static ggml_backend_dev_t (*real_device)(ggml_backend_reg_t, size_t);
static size_t (*real_count)(ggml_backend_reg_t);

static bool is_wrong(const struct ggml_tensor * node) {
    if (ZOO_WRONG == RIGHT || node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node)) { return false; }
    if (ZOO_OP[0] && strcmp(ggml_op_name(node->op), ZOO_OP) != 0) { return false; }
    if (ZOO_TYPE[0] && (!node->src[0] || strcmp(ggml_type_name(node->src[0]->type), ZOO_TYPE) != 0)) { return false; }
    return node->ne[1] >= ZOO_LEAST && node->ne[1] <= ZOO_MOST;
}

static void falsify(struct ggml_tensor * node) {
    size_t count = (size_t) ggml_nelements(node);
    float * values = malloc(count * sizeof(float));
    ggml_backend_tensor_get(node, values, 0, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        switch (ZOO_WRONG) {
            case RIGHT: break;
            case ZERO: values[i] = 0.0f; break;
            case NOTANUMBER: values[i] = NAN; break;
            case SCALED: values[i] *= ZOO_SCALE; break;
            case NOISE: values[i] *= (i * 2654435761u >> 16) & 1 ? ZOO_SCALE : 2.0f - ZOO_SCALE; break;
        }
    }
    ggml_backend_tensor_set(node, values, 0, count * sizeof(float));
    free(values);
}

static enum ggml_status compute_in_parts(ggml_backend_t backend, struct ggml_cgraph * graph) {
    int from = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        bool last = i + 1 == graph->n_nodes, wrong = is_wrong(graph->nodes[i]);
        if (!wrong && !last) { continue; }
        struct ggml_cgraph part = ggml_graph_view(graph, from, i + 1);
        enum ggml_status status = real_compute(backend, &part);
        if (status != GGML_STATUS_SUCCESS) { return status; }
        ggml_backend_synchronize(backend);
        if (wrong) { falsify(graph->nodes[i]); }
        from = i + 1;
    }
    return GGML_STATUS_SUCCESS;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static enum ggml_status compute(ggml_backend_t backend, struct ggml_cgraph * graph) {
    static int done;
    do_it(done == 0 ? ZOO_AT_FIRST : done > 2 ? ZOO_AFTER_FIRST : NOTHING);
    double began = now();
    enum ggml_status status = ZOO_WRONG == RIGHT ? real_compute(backend, graph) : compute_in_parts(backend, graph);
    if (ZOO_SLOWER > 1) {
        ggml_backend_synchronize(backend);
        usleep((useconds_t) ((now() - began) * 1e6 * (ZOO_SLOWER - 1)));
    }
    done++;
    return status;
}

static ggml_backend_t start_backend(ggml_backend_dev_t device, const char * params) {
    do_it(ZOO_AT_LOAD);
    ggml_backend_t backend = real_backend(device, params);
    if (backend && backend->iface.graph_compute != compute) {
        real_compute = backend->iface.graph_compute;
        backend->iface.graph_compute = compute;
    }
    return backend;
}

#ifdef ZOO_NAME
static const char * description(ggml_backend_dev_t device) {
    (void) device;
    return ZOO_NAME;
}
#endif

static ggml_backend_dev_t device_of(ggml_backend_reg_t reg, size_t index) {
    ggml_backend_dev_t device = real_device(reg, index);
    if (device && device->iface.init_backend != start_backend) {
        real_backend = device->iface.init_backend;
        device->iface.init_backend = start_backend;
#ifdef ZOO_NAME
        device->iface.get_description = description;
#endif
    }
    return device;
}

#ifdef ZOO_TWICE
static ggml_backend_dev_t device_or_twin(ggml_backend_reg_t reg, size_t index) {
    ggml_backend_dev_t device = device_of(reg, 0);
    static struct ggml_backend_device twin;
    if (index == 0) { return device; }
    twin = *device;
    return &twin;
}
#endif

static size_t device_count(ggml_backend_reg_t reg) {
    do_it(ZOO_AT_LIST);
#if defined(ZOO_NO_DEVICE)
    (void) reg;
    return 0;
#elif defined(ZOO_TWICE)
    return real_count(reg) ? 2 : 0;
#else
    return real_count(reg);
#endif
}

__attribute__((visibility("default"))) int ggml_backend_score(void) {
#ifdef ZOO_SCORE
    return ZOO_SCORE;
#else
    return 1 << 20;
#endif
}

__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void) {
    do_it(ZOO_AT_INIT);
#ifdef ZOO_REFUSE
    return NULL;
#endif
    void * module = real_module();
    ggml_backend_reg_t (*real)(void) = module ? (ggml_backend_reg_t (*)(void)) dlsym(module, "ggml_backend_init") : NULL;
    ggml_backend_reg_t reg = real ? real() : NULL;
    if (!reg || reg->iface.get_device_count == device_count) { return reg; }
    real_device = reg->iface.get_device;
    real_count = reg->iface.get_device_count;
#ifdef ZOO_TWICE
    reg->iface.get_device = device_or_twin;
#else
    reg->iface.get_device = device_of;
#endif
    reg->iface.get_device_count = device_count;
#ifdef ZOO_API
    reg->api_version = ZOO_API;
#endif
    return reg;
}

__attribute__((destructor)) static void at_exit(void) {
    do_it(ZOO_AT_EXIT);
}
