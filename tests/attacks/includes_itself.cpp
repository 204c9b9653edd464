// Attack: an endless source, made by a file that includes itself twice.
// Ends as: uncompiled
#include __FILE__
#include __FILE__
