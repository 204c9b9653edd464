#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/llama2c.h"
#include "model/config.h"

namespace stagecraft {

// The Config of a llama2.c file: its header, written as the config.json that says the same, and
// what llama2.c has in its code: eps 1e-5, theta 10,000, no scaling; a text ends at token 1
// (run.c), which begins one too, or at 2, sentencepiece's end. Throws Error as Llama2cHeader::read.
Config llama2c_config(const std::filesystem::path& path);

std::string llama2c_config_json(const Llama2cHeader& header);

}  // namespace stagecraft
