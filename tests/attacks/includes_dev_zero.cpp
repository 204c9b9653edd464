// Attack: an endless source.
// Ends as: uncompiled
#include "/dev/zero"
