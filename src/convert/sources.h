#pragma once

#include <string>

#include "base/json.h"
#include "convert/convert.h"
#include "model/description.h"
#include "text/tokenizer.h"

namespace stagecraft {

// What a model says about text, gathered from wherever its format keeps it.
struct SourceTokenizer {
  Json description;           // as a tokenizer.json says it
  std::string where;          // its file, for errors
  std::string chat_template;  // Jinja; "" if there is none
};

// Throws Error, also for a vocabulary by the longest match, which nobody else has.
SourceTokenizer source_tokenizer(const Conversion& conversion);

// Throws Error if a tokenizer that was named has ids beyond the rows of the model: it is another
// model's.
void refuse_other_tokenizer(const Conversion& conversion, const Tokenizer& tokenizer,
                            std::size_t n_rows);

// "SmolLM2-135M" for .../SmolLM2-135M.gguf, "story" for models/story/
std::string model_name(const ModelSource& model);

// The Config of a model that is to be written as `format`. Throws Error if it is not of Llama's
// family, which is all that these writers know.
Config llama_config(const ModelDescription& description, const ModelSource& model,
                    std::string_view format);

// Throws Error if the RoPE of the model is such that config.json has no words for it.
void refuse_rope_factors(const ModelDescription& description, const ModelSource& model);

}  // namespace stagecraft
