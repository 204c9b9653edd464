#include "text/subword_model.h"

#include "text/bpe.h"
#include "text/longest_match.h"

namespace stagecraft {

std::unique_ptr<const SubwordModel> SubwordModel::read(const JsonNode& model) {
  // Files older than the field "type" are BPE where they have merges.
  const auto type = model.find("type");
  const std::string_view name = type ? type->string() : model.find("merges") ? "BPE" : "none";
  if (name == "BPE") return std::make_unique<Bpe>(model);
  if (name == "LongestMatch") return std::make_unique<LongestMatch>(model);
  if (type) type->refuse("'BPE' (no other model is supported)");
  model.refuse("a model of type 'BPE'", "no type and no merges");
}

}  // namespace stagecraft
