// Attack: an error that looks like the walls', the linker's and the machine's own.
// Ends as: uncompiled
#line 1 "stagecraft: c++: cannot be started: fork: Resource temporarily unavailable\ncollect2: error: ld returned 1"
int x = ;
