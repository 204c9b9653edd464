// Attack: an error that looks like one of the sandbox, the linker and the machine.
// Ends as: uncompiled
#line 1 "stagecraft: c++: cannot be started: fork: Resource temporarily unavailable\ncollect2: error: ld returned 1"
int x = ;
