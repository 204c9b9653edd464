#include "text/formats/sentencepiece_model.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "text/formats/protobuf.h"
#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"

namespace stagecraft {
namespace {

// Four times the size of the largest vocabulary in use (Gemma 3: 262,144).
constexpr std::size_t kMaxPieces = std::size_t{1} << 20;

// Field numbers and defaults are those of sentencepiece_model.proto.

struct Piece {
  VocabularyToken token = {{}, TokenKind::Normal};
  float score = 0;
};

Piece read_piece(std::string_view bytes, const std::string& where) {
  Piece piece;
  ProtobufReader reader(bytes, where);
  while (const auto field = reader.next()) {
    if (field->number() == 1) piece.token.text = field->text("piece");
    if (field->number() == 2) piece.score = field->real("score");
    if (field->number() == 3) {
      const std::int32_t type = field->integer("type");
      if (type < 1 || type > 6) {
        throw Error("{}: type: expected 1 to 6, found {}", where, type);
      }
      piece.token.kind = static_cast<TokenKind>(type);
    }
  }
  if (piece.token.text.empty()) throw Error("{}: piece: expected a text, found none", where);
  if (piece.token.text.size() > kMaxTokenBytes) {
    throw Error("{}: piece: expected at most {} bytes, found {}", where, kMaxTokenBytes,
                piece.token.text.size());
  }
  if (!std::isfinite(piece.score)) {
    throw Error("{}: score: expected a finite number, found {}", where, piece.score);
  }
  return piece;
}

struct Trainer {
  std::int32_t model_type = 1;
  std::int32_t bos_id = 1;
  std::int32_t eos_id = 2;
  bool byte_fallback = false;
};

void read_trainer(std::string_view bytes, const std::string& where, Trainer& trainer) {
  ProtobufReader reader(bytes, where);
  while (const auto field = reader.next()) {
    switch (field->number()) {
      case 3:
        trainer.model_type = field->integer("model_type");
        break;
      case 24:
        if (field->flag("treat_whitespace_as_suffix")) {
          throw Error(
              "{}: treat_whitespace_as_suffix: expected false (true is not supported), found true",
              where);
        }
        break;
      case 35:
        trainer.byte_fallback = field->flag("byte_fallback");
        break;
      case 41:
        trainer.bos_id = field->integer("bos_id");
        break;
      case 42:
        trainer.eos_id = field->integer("eos_id");
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& where, SentencepieceModel& model) {
  ProtobufReader reader(bytes, where);
  while (const auto field = reader.next()) {
    switch (field->number()) {
      case 2:
        model.charsmap = field->bytes("precompiled_charsmap");
        break;
      case 3:
        model.add_dummy_prefix = field->flag("add_dummy_prefix");
        break;
      case 4:
        model.remove_extra_whitespaces = field->flag("remove_extra_whitespaces");
        break;
      case 5:
        if (!field->flag("escape_whitespaces")) {
          throw Error("{}: escape_whitespaces: expected true (false is not supported), found false",
                      where);
        }
        break;
      default:
        break;
    }
  }
}

void refuse_denormalizer(std::string_view bytes, const std::string& where) {
  ProtobufReader reader(bytes, where);
  while (const auto field = reader.next()) {
    if (field->number() == 2 && !field->bytes("precompiled_charsmap").empty()) {
      throw Error("{}: precompiled_charsmap: expected none (it is not supported), found {} bytes",
                  where, field->bytes("precompiled_charsmap").size());
    }
  }
}

void check_bytes(const SentencepieceModel& model) {
  std::array<bool, 256> found = {};
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].kind != TokenKind::Byte) continue;
    const std::string_view text = model.pieces[i].text;
    const auto byte = byte_of_token(text);
    if (!byte || byte_token_text(*byte) != text) {  // sentencepiece accepts no lower case
      throw Error("{}: pieces[{}]: expected a byte from <0x00> to <0xFF>, found '{}'", model.file,
                  i, printable(text, 40));
    }
    if (!model.byte_fallback) {
      throw Error(
          "{}: pieces[{}]: expected no byte piece if trainer_spec.byte_fallback is false, found "
          "'{}'",
          model.file, i, text);
    }
    found[*byte] = true;
  }
  for (std::size_t byte = 0; model.byte_fallback && byte < found.size(); ++byte) {
    if (!found[byte]) {
      throw Error(
          "{}: pieces: expected one piece for every byte (trainer_spec.byte_fallback is true), "
          "found none for {}",
          model.file, byte_token_text(static_cast<unsigned char>(byte)));
    }
  }
}

void check_unknown(SentencepieceModel& model) {
  bool found = false;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].kind != TokenKind::Unknown) continue;
    if (found) {
      throw Error("{}: pieces[{}]: expected one piece of type UNKNOWN, found '{}' after '{}'",
                  model.file, i, printable(model.pieces[i].text, 40),
                  printable(model.pieces[static_cast<std::size_t>(model.unknown_id)].text, 40));
    }
    model.unknown_id = static_cast<TokenId>(i);
    found = true;
  }
  if (!found) {
    throw Error("{}: pieces: expected one piece of type UNKNOWN, found none among {} pieces",
                model.file, model.pieces.size());
  }
}

// An id of trainer_spec, if it belongs to a control piece, which text cannot spell; else nullopt.
std::optional<TokenId> control_id(const SentencepieceModel& model, std::int32_t id) {
  if (id < 0 || static_cast<std::size_t>(id) >= model.pieces.size()) return std::nullopt;
  if (model.pieces[static_cast<std::size_t>(id)].kind != TokenKind::Control) return std::nullopt;
  return id;
}

}  // namespace

SentencepieceModel SentencepieceModel::read(std::string_view bytes, std::string file) {
  SentencepieceModel model;
  model.file = std::move(file);
  Trainer trainer;
  ProtobufReader reader(bytes, model.file);
  while (const auto field = reader.next()) {
    switch (field->number()) {
      case 1: {
        if (model.pieces.size() == kMaxPieces) {
          throw Error("{}: pieces: expected at most {}, found more", model.file, kMaxPieces);
        }
        const std::string where = fmt::format("{}: pieces[{}]", model.file, model.pieces.size());
        const Piece piece = read_piece(field->bytes("pieces"), where);
        model.pieces.push_back(piece.token);
        model.scores.push_back(piece.score);
        break;
      }
      case 2:
        read_trainer(field->bytes("trainer_spec"), model.file + ": trainer_spec", trainer);
        break;
      case 3:
        read_normalizer(field->bytes("normalizer_spec"), model.file + ": normalizer_spec", model);
        break;
      case 5:
        refuse_denormalizer(field->bytes("denormalizer_spec"), model.file + ": denormalizer_spec");
        break;
      default:
        break;
    }
  }
  if (model.pieces.empty()) {
    throw Error("{}: expected a sentencepiece model, found no pieces", model.file);
  }
  if (trainer.model_type != 1 && trainer.model_type != 2) {
    throw Error("{}: trainer_spec: model_type: expected 1 (UNIGRAM) or 2 (BPE), found {}",
                model.file,
                trainer.model_type == 3   ? "3 (WORD)"
                : trainer.model_type == 4 ? "4 (CHAR)"
                                          : fmt::format("{}", trainer.model_type));
  }
  model.algorithm = static_cast<Algorithm>(trainer.model_type);
  model.byte_fallback = trainer.byte_fallback;
  check_bytes(model);
  check_unknown(model);
  model.bos_id = control_id(model, trainer.bos_id);
  model.eos_id = control_id(model, trainer.eos_id);
  return model;
}

}  // namespace stagecraft
