// A module that needs a library which no system has: the linker is given an empty one.
extern int zoo_absent(void);
void * ggml_backend_init(void) { return zoo_absent() ? (void *) 0 : (void *) 0; }
