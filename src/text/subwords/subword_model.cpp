#include "text/subwords/subword_model.h"

#include <cstdint>
#include <limits>

#include "base/error.h"
#include "text/subwords/bpe.h"
#include "text/subwords/longest_match.h"
#include "text/subwords/unigram.h"
#include "text/unicode.h"

namespace stagecraft {

void SubwordModel::encode_without(const Forbidden&, std::string_view piece,
                                  std::vector<TokenId>& ids) const {
  while (!piece.empty()) {
    const std::size_t length = first_code_point(piece).length;
    encode(piece.substr(0, length), ids);
    piece.remove_prefix(length);
  }
}

std::unique_ptr<const SubwordModel> SubwordModel::read(const JsonNode& model) {
  // In files older than the field "type", merges mean BPE.
  const auto type = model.find("type");
  const std::string_view name = type ? type->string() : model.find("merges") ? "BPE" : "none";
  if (name == "BPE") return std::make_unique<Bpe>(model);
  if (name == "LongestMatch") return std::make_unique<LongestMatch>(model);
  if (name == "Unigram") return std::make_unique<Unigram>(model);
  if (type) type->refuse("'BPE' or 'Unigram' (no other model is supported)");
  model.refuse("a model of type 'BPE' or 'Unigram'", "no type and no merges");
}

void SubwordModel::check_size(std::string_view piece) {
  if (piece.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) return;
  throw Error("text: expected words of less than 2 GiB, found one of {} bytes", piece.size());
}

}  // namespace stagecraft
