#pragma once

#include <string>

#include "formats/llama2c/file.h"

namespace stagecraft {

// The config.json of a llama2.c file: the values of its header, and constants from the code of
// llama2.c: eps 1e-5, theta 10,000, no scaling. A text ends at token 1, which also begins a text
// (run.c), or at token 2, the end token of sentencepiece.
std::string llama2c_config_json(const Llama2cHeader& header);

}  // namespace stagecraft
