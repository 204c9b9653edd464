#pragma once

#include "model/config.h"
#include "model/parameters.h"

namespace stagecraft {

// A model as the layers of the course see it: its shape and its weights in f32.
struct Model {
  Config config;
  Parameters parameters;  // looks at a Checkpoint, which must outlive it
};

}  // namespace stagecraft
