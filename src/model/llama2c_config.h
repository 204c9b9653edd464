#pragma once

#include <string>

#include "checkpoint/llama2c.h"

namespace stagecraft {

// The config.json of a llama2.c file, which says the same as its header, and
// what llama2.c has in its code: eps 1e-5, theta 10,000, no scaling; a text ends at token 1
// (run.c), which begins one too, or at 2, sentencepiece's end.
std::string llama2c_config_json(const Llama2cHeader& header);

}  // namespace stagecraft
