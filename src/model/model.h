#pragma once

#include "model/config.h"
#include "model/parameters.h"

namespace stagecraft {

// A model for the layers of the course: its shape, and its weights in f32.
struct Model {
  Config config;
  Parameters parameters;  // may point into a Checkpoint, which must outlive it
};

}  // namespace stagecraft
