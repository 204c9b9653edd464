#include "text/formats/sentencepiece_tokenizer.h"

#include <map>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/mapped_file.h"
#include "base/number.h"
#include "text/formats/description_parts.h"
#include "text/formats/sentencepiece_model.h"
#include "text/formats/sentencepiece_normalizer.h"
#include "text/pipeline/metaspace.h"
#include "text/subwords/scored_bpe.h"
#include "text/subwords/unigram.h"

namespace stagecraft {
namespace {

std::optional<Json> read_beside(const std::filesystem::path& path, const char* name) {
  const std::filesystem::path file = path.parent_path() / name;
  if (!is_there(file)) return std::nullopt;
  return Json(read_text_file(file, Json::kMaxBytes), file.string());
}

std::int64_t id_of(const JsonNode& member) {
  const auto id = integer_of<std::uint32_t>(member.key());
  if (!id || *id > 999'999'999) member.refuse("a token id as its key");
  return *id;
}

// The "added_tokens" of a tokenizer.json: the control pieces and the unknown piece, which text may
// spell if special tokens are parsed, and the tokens that were added to the model later.
Json describe_added_tokens(const SentencepieceModel& model, const std::optional<Json>& config,
                           const std::optional<Json>& added) {
  std::map<std::int64_t, AddedTokenDescription> tokens;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const TokenKind kind = model.pieces[i].kind;
    if (kind != TokenKind::Control && kind != TokenKind::Unknown) continue;
    tokens[static_cast<std::int64_t>(i)] = {.content = model.pieces[i].text};
  }
  const auto decoder = config ? config->root().find("added_tokens_decoder") : std::nullopt;
  if (decoder) {
    for (const JsonNode node : decoder->members()) {
      tokens[id_of(node)] = {.content = node.at("content").string(),
                             .special = node.boolean_or("special", false),
                             .lstrip = node.boolean_or("lstrip", false),
                             .rstrip = node.boolean_or("rstrip", false),
                             .single_word = node.boolean_or("single_word", false)};
    }
  } else if (added) {
    for (const JsonNode node : added->root().members()) {
      tokens[node.integer()] = {.content = node.key()};
    }
  }
  JsonBuilder json(model.file + ": added tokens");
  json.array([&] {
    for (const auto& [id, token] : tokens) add_added_token(json, id, token);
  });
  return json.take();
}

PostProcessor post_processor_for(const SentencepieceModel& model,
                                 const std::optional<Json>& config) {
  const auto place = [&](const char* flag, bool default_value,
                         std::optional<TokenId> id) -> std::optional<std::size_t> {
    const auto node = config ? config->root().find(flag) : std::nullopt;
    if (!(node ? node->boolean() : default_value)) return std::nullopt;
    if (!id && node) node->refuse("false (" + model.file + " has no control piece for it)");
    return id;
  };
  const auto begin = place("add_bos_token", true, model.bos_id);
  const auto end = place("add_eos_token", false, model.eos_id);
  if (!begin && !end) return {};
  JsonBuilder json(model.file);
  add_post_processor(json, model.pieces, begin, end);
  return PostProcessor(json.take().root());
}

Decoder decoder_for(const SentencepieceModel& model) {
  const std::string mark(kSpaceMark);
  std::vector<Decoder::Step> steps;
  if (model.add_dummy_prefix || model.remove_extra_whitespaces) {
    steps.emplace_back(Decoder::DropFirst{mark, model.remove_extra_whitespaces});
  }
  steps.emplace_back(Decoder::Replace{mark, " ", " "});
  if (model.byte_fallback) steps.emplace_back(Decoder::ByteFallback{});
  steps.emplace_back(Decoder::Fuse{});
  return Decoder(std::move(steps));
}

}  // namespace

Tokenizer::Impl read_sentencepiece(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  refuse_lfs_pointer(bytes, path.string());
  const SentencepieceModel model = SentencepieceModel::read(bytes, path.string());
  const auto config = read_beside(path, "tokenizer_config.json");
  const auto added = read_beside(path, "added_tokens.json");

  Tokenizer::Impl parts;
  parts.file = path.string();
  if (model.algorithm == SentencepieceModel::Algorithm::Bpe) {
    parts.model = std::make_unique<ScoredBpe>(model);
  } else {
    parts.model = std::make_unique<Unigram>(model);
  }
  parts.normalizer = std::make_unique<SentencepieceNormalizer>(model);
  const Json tokens = describe_added_tokens(model, config, added);
  parts.added = AddedTokens(tokens.root(), parts.model->vocabulary(), parts.normalizer.get());
  parts.decoder = decoder_for(model);
  parts.post_processor = post_processor_for(model, config);
  return parts;
}

}  // namespace stagecraft
