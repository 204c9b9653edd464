// Attack: includes the engine's own answer.
// Ends as: uncompiled
#include "operators/rms_norm.cpp"
