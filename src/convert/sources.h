#pragma once

#include <string>

#include "base/json.h"
#include "convert/convert.h"
#include "model/description.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"

namespace stagecraft {

// The tokenizer and the chat template of a model of any format.
struct SourceTokenizer {
  Json description;           // the tokenizer in the form of a tokenizer.json
  Tokenizer tokenizer;        // made from it
  std::string where;          // the tokenizer's file, for errors
  std::string chat_template;  // Jinja; "" if there is none
  SpecialTokens special_tokens;
  std::string tools_template = {};  // for conversations with tools; "": the same
};

// Where to read the chat template: in the model, or if it has none, in the conversion's tokenizer.
const ModelSource& source_of_template(const Conversion& conversion);

// Throws Error if there is no tokenizer, or if it is that of a .flm file: other formats cannot
// express its encoding by the longest match.
SourceTokenizer source_tokenizer(const Conversion& conversion);

// Throws Error if the conversion has a tokenizer of its own, which is that of another model.
// vocab_size: that of the tokenizer.
void check_tokenizer(const Conversion& conversion, std::size_t vocab_size, const Plan& plan);

// Adds a note if no token ends a text: then it goes on until the context is full.
void note_no_end(const Conversion& conversion, const Plan& plan, Converted& result);

// The Config of a model that will be written in `format` (a name for errors). Throws Error if the
// model is not of the Llama family: these writers support no other.
Config llama_config(const ModelDescription& description, const ModelSource& model,
                    std::string_view format);

}  // namespace stagecraft
