// What a module needs and nobody ships.
int zoo_absent(void) { return 0; }
