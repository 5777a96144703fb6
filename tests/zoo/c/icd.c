// A Vulkan driver of ours that loads a real one (ZOO_REAL) and lies about what it is.
//
//   ZOO_NAME="..."   the device's name; it becomes a discrete card of that name's vendor
//   ZOO_NO_16_BIT    the device has no 16-bit storage
//   ZOO_AT_LOAD      what happens when the loader takes it: HANG or SEGV
// Only the places of a few fields are needed, from the Vulkan specification.
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum what { NOTHING, HANG, SEGV };
#ifndef ZOO_AT_LOAD
#define ZOO_AT_LOAD NOTHING
#endif

typedef void (*function)(void);
typedef function (*lookup)(void *, const char *);
struct chained { uint32_t type; struct chained * next; };
enum { PROPERTIES_2_AT = 16, NAME_AT = 20, TYPE_AT = 16, NAME_SIZE = 256 };
enum { DRIVER_PROPERTIES = 1000196000, VULKAN_12_PROPERTIES = 52 };
enum { STORAGE_16_FEATURES = 1000083000, VULKAN_11_FEATURES = 49 };

static lookup real_lookup, real_physical;
static int (*real_negotiate)(uint32_t *);
static void (*real_properties)(void *, uint8_t *), (*real_properties_2)(void *, uint8_t *);
static void (*real_features_2)(void *, uint8_t *);

static void take(void) {
    if (ZOO_AT_LOAD == HANG) { for (;;) { pause(); } }
    if (ZOO_AT_LOAD == SEGV) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
    if (real_lookup) { return; }
    void * handle = dlopen(ZOO_REAL, RTLD_NOW | RTLD_LOCAL);
    if (!handle) { fprintf(stderr, "zoo: %s\n", dlerror()); return; }
    real_lookup = (lookup) dlsym(handle, "vk_icdGetInstanceProcAddr");
    real_physical = (lookup) dlsym(handle, "vk_icdGetPhysicalDeviceProcAddr");
    real_negotiate = (int (*)(uint32_t *)) dlsym(handle, "vk_icdNegotiateLoaderICDInterfaceVersion");
}

static void lie(uint8_t * p) {
#ifdef ZOO_NAME
    uint32_t vendor = 0x10de, kind = 2;
    memcpy(p + 8, &vendor, sizeof vendor);
    memcpy(p + TYPE_AT, &kind, sizeof kind);
    snprintf((char *) p + NAME_AT, NAME_SIZE, "%s", ZOO_NAME);
#endif
    (void) p;
}

static void properties(void * device, uint8_t * p) {
    real_properties(device, p);
    lie(p);
}

static void properties_2(void * device, uint8_t * p) {
    real_properties_2(device, p);
    lie(p + PROPERTIES_2_AT);
#ifdef ZOO_NAME
    for (struct chained * c = (struct chained *) p; c; c = c->next) {
        if (c->type == DRIVER_PROPERTIES || c->type == VULKAN_12_PROPERTIES) {
            uint32_t nvidia = 4;
            memcpy((uint8_t *) c + 16, &nvidia, sizeof nvidia);
            snprintf((char *) c + 20, NAME_SIZE, "NVIDIA");
        }
    }
#endif
}

static void features_2(void * device, uint8_t * p) {
    real_features_2(device, p);
#ifdef ZOO_NO_16_BIT
    for (struct chained * c = (struct chained *) p; c; c = c->next) {
        if (c->type == STORAGE_16_FEATURES || c->type == VULKAN_11_FEATURES) {
            memset((uint8_t *) c + 16, 0, 4);
        }
    }
#endif
}

static function ours(const char * name, function real) {
    if (!real) { return real; }
    if (!strcmp(name, "vkGetPhysicalDeviceProperties")) {
        real_properties = (void (*)(void *, uint8_t *)) real;
        return (function) properties;
    }
    if (!strncmp(name, "vkGetPhysicalDeviceProperties2", 30)) {
        real_properties_2 = (void (*)(void *, uint8_t *)) real;
        return (function) properties_2;
    }
    if (!strncmp(name, "vkGetPhysicalDeviceFeatures2", 28)) {
        real_features_2 = (void (*)(void *, uint8_t *)) real;
        return (function) features_2;
    }
    return real;
}

function vk_icdGetInstanceProcAddr(void * instance, const char * name) {
    take();
    return real_lookup ? ours(name, real_lookup(instance, name)) : NULL;
}

function vk_icdGetPhysicalDeviceProcAddr(void * instance, const char * name) {
    take();
    return real_physical ? ours(name, real_physical(instance, name)) : NULL;
}

int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t * version) {
    take();
    return real_negotiate ? real_negotiate(version) : 0;
}
