// Attack: includes the engine's own answer by its absolute path.
// Ends as: uncompiled
#include ROOT "/src/operators/rms_norm.cpp"
