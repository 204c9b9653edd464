// Attack: lets the compiler read what the worker may not.
// Ends as: uncompiled
#include "/proc/self/environ"
