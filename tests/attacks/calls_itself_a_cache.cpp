// Attack: an error that begins as a compiler cache's own do.
// Ends as: uncompiled
#line 1 "ccache: error"
int x = ;
