// main() of every test program; compiled once, because it is the slow half of Catch2.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
