// A library that offers no plugins.

int answer();
int answer() { return 42; }
