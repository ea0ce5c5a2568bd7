// A library without plugins.

int answer();
int answer() { return 42; }
