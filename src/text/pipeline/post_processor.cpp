#include "text/pipeline/post_processor.h"

#include <limits>

namespace stagecraft {
namespace {

constexpr std::size_t kMaxTokens = 1024;  // of a template, which surrounds every text

}  // namespace

PostProcessor::PostProcessor(const JsonNode& node) { read(node); }

void PostProcessor::read(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string_view name = type.string();
  if (name == "Sequence") {
    for (const JsonNode part : node.at("processors").elements()) read(part);
  } else if (name == "TemplateProcessing") {
    if (template_) type.refuse("at most one TemplateProcessing in a Sequence", "another one");
    read_template(node);
  } else if (name != "ByteLevel") {
    type.refuse("a supported post-processor (TemplateProcessing, ByteLevel, Sequence)");
  }
}

void PostProcessor::read_template(const JsonNode& node) {
  template_.emplace();
  const JsonNode single = node.at("single");
  const auto add = [&](std::optional<TokenId> part) {
    if (template_->size() >= kMaxTokens) {
      single.refuse(fmt::format("at most {} tokens and texts", kMaxTokens), "more");
    }
    template_->push_back(part);
  };
  for (const JsonNode piece : single.elements()) {
    if (const auto sequence = piece.find("Sequence")) {
      const JsonNode id = sequence->at("id");
      if (id.string() != "A") id.refuse("'A', the one text of 'single'");
      add(std::nullopt);
    } else if (const auto special = piece.find("SpecialToken")) {
      const JsonNode tokens = node.at("special_tokens");
      const auto token = tokens.find(special->at("id").string());
      if (!token) special->at("id").refuse("a key of special_tokens");
      for (const JsonNode id_node : token->at("ids").elements()) {
        const std::int64_t id = id_node.integer();
        if (id < 0 || id > std::numeric_limits<TokenId>::max()) id_node.refuse("a token id");
        add(static_cast<TokenId>(id));
      }
    } else {
      piece.refuse("a field 'Sequence' or a field 'SpecialToken'", "none");
    }
  }
}

std::vector<TokenId> PostProcessor::apply(std::vector<TokenId> ids, bool add_special) const {
  if (!template_) return ids;
  std::vector<TokenId> out;
  out.reserve(ids.size() + template_->size());
  for (const std::optional<TokenId>& part : *template_) {
    if (!part) {
      out.insert(out.end(), ids.begin(), ids.end());
    } else if (add_special) {
      out.push_back(*part);
    }
  }
  return out;
}

std::vector<TokenId> PostProcessor::added_ids() const {
  std::vector<TokenId> ids;
  if (!template_) return ids;
  for (const std::optional<TokenId>& part : *template_) {
    if (part) ids.push_back(*part);
  }
  return ids;
}

}  // namespace stagecraft
