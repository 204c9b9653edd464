// Attack: lets the compiler read a file that the worker may not read.
// Ends as: uncompiled
#include "/proc/self/environ"
