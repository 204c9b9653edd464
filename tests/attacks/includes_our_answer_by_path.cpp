// Attack: the same, by its place.
// Ends as: uncompiled
#include ROOT "/src/operators/rms_norm.cpp"
