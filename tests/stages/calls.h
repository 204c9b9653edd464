#pragma once

#include <map>
#include <string>

#include "tests/stages/arguments.h"

namespace stagecraft::stages {

// How a worker calls each staged function: from a request's inputs and scalars to its arguments.
using Call = void (*)(Arguments&);
using CallTable = std::map<std::string, Call>;

const CallTable& operator_calls();  // silu, rms_norm, attention ...
const CallTable& block_calls();     // mlp, attention_block
const CallTable& loading_calls();   // parse_config, load_parameters
const CallTable& model_calls();     // forward, sample, generate
const CallTable& chat_calls();      // message_tokens, answer_opening, chat_turn
const CallTable& all_calls();

}  // namespace stagecraft::stages
