// A link check links every object of one module against the dependencies that the module declared, and nothing else.
int main() { return 0; }
