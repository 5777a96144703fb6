// A library that loads and is no backend.
int zoo_is_no_backend(void) { return 0; }
