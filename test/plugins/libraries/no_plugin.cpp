// A library, but none of visitors.

int answer();
int answer() { return 42; }
