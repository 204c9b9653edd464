// Attack: an error that begins like an error of the compiler cache.
// Ends as: uncompiled
#line 1 "ccache: error"
int x = ;
