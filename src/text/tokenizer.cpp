#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "checkpoint/model_file.h"
#include "text/formats/sentencepiece_tokenizer.h"
#include "text/tokenizer_impl.h"
#include "text/tokenizer_source.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

// Remembers the ids of pieces: words repeat, and merging is the expensive part. Each call of
// encode() has its own, so threads share nothing.
class PieceEncoder {
 public:
  PieceEncoder(const Tokenizer::Impl& parts, bool parse_special)
      : parts_(parts), parse_special_(parse_special) {}

  void encode(std::string_view piece, std::vector<TokenId>& ids) {
    if (piece.size() > kMaxBytes) return encode_anew(piece, ids);
    const auto found = known_.find(std::string(piece));
    if (found != known_.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
    const auto begin = static_cast<std::ptrdiff_t>(ids.size());
    encode_anew(piece, ids);
    if (known_.size() < kMaxPieces) {
      known_.emplace(piece, std::vector<TokenId>(ids.begin() + begin, ids.end()));
    }
  }

 private:
  static constexpr std::size_t kMaxBytes = 64;
  static constexpr std::size_t kMaxPieces = 50'000;

  void encode_anew(std::string_view piece, std::vector<TokenId>& ids) const {
    const std::size_t begin = ids.size();
    parts_.model->encode(piece, ids);
    if (parse_special_ || std::none_of(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(),
                                       [this](TokenId id) { return marks_structure(id); })) {
      return;
    }
    // The model made a special token from plain text. Encode again without such tokens.
    ids.resize(begin);
    parts_.model->encode_without([this](TokenId id) { return marks_structure(id); }, piece, ids);
  }

  // Special tokens that text must not become. A token of one character is not among them: no other
  // tokens spell that character.
  bool marks_structure(TokenId id) const {
    const AddedToken* token = parts_.added.find(id);
    return token != nullptr && token->special && parts_.model->unknown_id() != id &&
           !is_one_character(token->content);
  }

  const Tokenizer::Impl& parts_;
  bool parse_special_;
  std::unordered_map<std::string, std::vector<TokenId>> known_;
};

// One call of encode() for a text of `bytes` bytes.
class Encoder {
 public:
  Encoder(const Tokenizer::Impl& parts, Tokenizer::EncodeOptions options, std::size_t bytes)
      : parts_(parts),
        parse_special_(options.parse_special),
        at_start_(options.at_start),
        limit_(parts.file, bytes),
        frame_pieces_(parts, options.parse_special),
        typed_pieces_(parts, false) {}

  std::vector<TokenId> run(std::string_view text, std::span<const TextSpan> typed) {
    for (const auto& segment :
         parts_.added.split(text, AddedTokens::Kind::kRaw, parse_special_, typed)) {
      if (segment.id) {
        ids_.push_back(*segment.id);
        continue;
      }
      MarkedText raw;
      std::size_t begin = segment.begin;
      while (!typed.empty() && typed.front().end <= begin) typed = typed.subspan(1);
      for (const TextSpan& span : typed) {
        if (span.begin >= segment.end) break;
        const std::size_t from = std::max(span.begin, begin);
        const std::size_t to = std::min(span.end, segment.end);
        raw.append(text.substr(begin, from - begin), false);
        raw.append(text.substr(from, to - from), true);
        begin = to;
      }
      raw.append(text.substr(begin, segment.end - begin), false);
      encode_marked(raw, at_start_ && segment.begin == 0);
    }
    return std::move(ids_);
  }

 private:
  // Encodes text without raw added tokens, not normalized yet. It may still contain added tokens
  // that are searched for in normalized text, but normalizing loses the marks. So if typed text
  // could form such a token, frame and typed text are encoded separately.
  void encode_marked(const MarkedText& raw, bool at_start) {
    if (!raw.has_typed() || !parse_special_) {
      return encode_raw(raw.bytes(), at_start, parse_special_, frame_pieces_);
    }
    std::size_t of_frame = 0, of_typed = 0;
    bool first = at_start;
    raw.for_each_stretch(0, raw.size(), [&](std::string_view bytes, bool typed) {
      (typed ? of_typed : of_frame) += count_special(bytes, std::exchange(first, false));
    });
    if (of_typed == 0 && of_frame == count_special(raw.bytes(), at_start)) {
      return encode_raw(raw.bytes(), at_start, true, typed_pieces_);
    }
    first = at_start;
    raw.for_each_stretch(0, raw.size(), [&](std::string_view bytes, bool typed) {
      encode_raw(bytes, std::exchange(first, false), !typed, typed ? typed_pieces_ : frame_pieces_);
    });
  }

  // at_start becomes false if the beginning was removed.
  std::string normalized(std::string_view raw, bool& at_start) const {
    std::string text(raw);
    if (parts_.normalizer) parts_.normalizer->apply(text, at_start, limit_);
    return text;
  }

  std::size_t count_special(std::string_view raw, bool at_start) const {
    std::size_t count = 0;
    const std::string text = normalized(raw, at_start);
    for (const auto& segment : parts_.added.split(text, AddedTokens::Kind::kNormalized, true)) {
      count += segment.id && parts_.added.find(*segment.id)->special;
    }
    return count;
  }

  void encode_raw(std::string_view raw, bool at_start, bool parse_special, PieceEncoder& pieces) {
    const std::string text = normalized(raw, at_start);
    limit_.use(text.size());
    for (const auto& segment :
         parts_.added.split(text, AddedTokens::Kind::kNormalized, parse_special)) {
      if (segment.id) {
        ids_.push_back(*segment.id);
      } else {
        encode_normalized(text.substr(segment.begin, segment.end - segment.begin),
                          at_start && segment.begin == 0, pieces);
      }
    }
  }

  void encode_normalized(std::string text, bool at_start, PieceEncoder& encoder) {
    const std::size_t size = text.size();
    Pieces pieces{std::move(text), {{0, size, at_start}}};
    if (parts_.pre_tokenizer) {
      parts_.pre_tokenizer->apply(pieces, limit_);
      limit_.use(pieces.text.size());
    }
    for (const Pieces::Piece& piece : pieces.pieces) {
      encoder.encode(std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin),
                     ids_);
    }
  }

  const Tokenizer::Impl& parts_;
  bool parse_special_;
  bool at_start_;
  GrowthLimit limit_;
  PieceEncoder frame_pieces_;  // for frame text
  PieceEncoder typed_pieces_;  // for text with typed bytes: the model may not form special tokens
  std::vector<TokenId> ids_;
};

// A limit is needed: each step takes time at every text, or at every token that is decoded.
constexpr std::size_t kMaxSteps = 64;

// The steps of a normalizer, pre-tokenizer or decoder, or of a Sequence of them, whose elements are
// under `list`. An empty Sequence counts, too: it takes time.
std::size_t count_steps(JsonNode node, std::string_view list) {
  const auto parts = node.is_object() ? node.find(list) : std::nullopt;
  if (!parts || !parts->is_array() || parts->size() == 0) return 1;
  std::size_t n = 0;
  for (const JsonNode part : parts->elements()) n += count_steps(part, list);
  return n;
}

void check_steps(JsonNode root) {
  for (const auto& [name, list] : {std::pair{"normalizer", "normalizers"},
                                   {"pre_tokenizer", "pretokenizers"},
                                   {"decoder", "decoders"}}) {
    const auto part = root.find(name);
    const std::size_t n = part ? count_steps(*part, list) : 0;
    if (n > kMaxSteps) {
      part->refuse(fmt::format("at most {} steps", kMaxSteps), fmt::format("{}", n));
    }
  }
}

}  // namespace

Tokenizer::Impl Tokenizer::Impl::read(const Json& description) {
  const JsonNode root = description.root();
  if (const auto version = root.find("version"); version && version->string() != "1.0") {
    version->refuse("'1.0'");
  }
  // The settings of a training run, which its tokenizer was saved with. They have no effect, as in
  // transformers: it switches both off unless a call asks for them.
  for (const std::string_view name : {"truncation", "padding"}) {
    const auto option = root.find(name);
    if (option && !option->is_object()) option->refuse("an object or null");
  }
  Tokenizer::Impl parts;
  parts.file = root.where();
  parts.model = SubwordModel::read(root.at("model"));
  const Vocabulary& vocabulary = parts.model->vocabulary();
  check_steps(root);
  if (const auto part = root.find("normalizer")) parts.normalizer = Normalizer::read(*part);
  if (const auto part = root.find("pre_tokenizer")) parts.pre_tokenizer = PreTokenizer::read(*part);
  if (const auto part = root.find("added_tokens")) {
    parts.added = AddedTokens(*part, vocabulary, parts.normalizer.get());
  }
  if (const auto part = root.find("decoder")) parts.decoder = Decoder(*part);
  if (const auto part = root.find("post_processor")) {
    parts.post_processor = PostProcessor(*part);
    for (const TokenId id : parts.post_processor.added_ids()) {
      if (!vocabulary.contains(id) && parts.added.find(id) == nullptr) {
        part->refuse("ids of the vocabulary", fmt::format("{}", id));
      }
    }
  }
  return parts;
}

std::optional<std::filesystem::path> tokenizer_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (is_there(path / name)) return path / name;
  }
  return std::nullopt;
}

Tokenizer::Impl Tokenizer::Impl::read_file(const std::filesystem::path& path) {
  if (path.extension() == ".model") return read_sentencepiece(path);
  return read(Json(read_text_file(path, Json::kMaxBytes), path.string()));
}

std::size_t Tokenizer::Impl::end_id() const {
  return std::max(model->vocabulary().end_id(), added.end_id());
}

// An added token that is searched for in normalized text is decoded from its normalized form,
// because the decoder undoes the steps of the normalizer.
std::optional<std::string_view> Tokenizer::Impl::text_to_decode(TokenId id) const {
  if (const AddedToken* token = added.find(id)) return token->pattern;
  if (!model->vocabulary().contains(id)) return std::nullopt;
  return model->vocabulary().text(id);
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::open(const ModelSource& model) {
  try {
    if (const auto description = describe_tokenizer(model)) return read(*description);
  } catch (const Error& error) {
    if (!model.is_file()) throw;
    throw Error("{}", model.file()->with_own_names(error.what()));
  }
  const auto file = tokenizer_file(model.path());
  if (!file) {
    throw Error("{}: expected a folder with a tokenizer.json or a tokenizer.model, found neither",
                model.name());
  }
  return Tokenizer(std::make_unique<const Impl>(Impl::read_file(*file)));
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json, const std::string& name) {
  return read(Json(tokenizer_json, name));
}

Tokenizer Tokenizer::read(const Json& description) {
  return Tokenizer(std::make_unique<const Impl>(Impl::read(description)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  check_utf8("text", text);
  std::vector<TokenId> ids = Encoder(*impl_, options, text.size()).run(text, {});
  return impl_->post_processor.apply(std::move(ids), options.add_special);
}

std::vector<TokenId> Tokenizer::encode(const MarkedText& text, EncodeOptions options) const {
  check_utf8("text", text.bytes());
  std::vector<TokenId> ids =
      Encoder(*impl_, options, text.size()).run(text.bytes(), text.typed_spans());
  return impl_->post_processor.apply(std::move(ids), options.add_special);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  Decoding decoding(impl_->decoder);
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocab_size()) {
      throw Error("{}: expected token ids from 0 to {}, found {}", impl_->file, vocab_size() - 1,
                  id);
    }
    if (const auto text = impl_->text_to_decode(id)) decoding.push(*text);
  }
  decoding.finish();
  return decoding.take();
}

std::string Tokenizer::bytes_of(TokenId id) const {
  if (!impl_->text_to_decode(id)) return {};
  const TokenId twice[] = {id, id};
  const std::string once = decode(std::span(twice).first(1)), both = decode(twice);
  // A decoder may change two tokens as a whole, and even make them shorter.
  return both.starts_with(once) ? both.substr(once.size()) : once;
}

std::string_view Tokenizer::algorithm() const { return impl_->model->name(); }

std::size_t Tokenizer::vocab_size() const { return impl_->end_id(); }

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  if (const auto id = impl_->added.find(token)) return id;
  return impl_->model->vocabulary().find(token);
}

std::string_view Tokenizer::token_of(TokenId id) const {
  if (const AddedToken* token = impl_->added.find(id)) return token->content;
  return impl_->model->vocabulary().text(id);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = impl_->added.find(id);
  return token != nullptr && token->special;
}

}  // namespace stagecraft
