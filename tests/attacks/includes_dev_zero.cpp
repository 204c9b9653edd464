// Attack: a source without end.
// Ends as: uncompiled
#include "/dev/zero"
