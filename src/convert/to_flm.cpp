// convert_to_flm: as FastLLM's torch2flm.py writes a model.
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/flm.h"
#include "convert/convert.h"
#include "convert/sources.h"
#include "convert/tensor_plan.h"
#include "model/config.h"
#include "text/chat_tokens.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

void put(std::string& out, std::size_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_text(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

// As Python prints it.
std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_null() ? "None" : value.dump();
}

// Of ChatML alone it is known how these four spell it.
void add_chat(std::map<std::string, std::string>& pairs, const std::string& chat_template) {
  if (chat_template.find(kChatStart) == std::string::npos) return;
  pairs["pre_prompt"] = "";
  pairs["user_role"] = fmt::format("{}user\n", kChatStart);
  pairs["bot_role"] = fmt::format("{}\n{}assistant\n", kChatEnd, kChatStart);
  pairs["history_sep"] = fmt::format("{}\n", kChatEnd);
}

std::string pairs_text(const Conversion& conversion) {
  const std::string where = conversion.model.string();
  std::map<std::string, std::string> pairs;
  const Json config = parse_json_object(config_json(conversion.model), where);
  for (const auto& [key, value] : config.items()) pairs[key] = value_text(value);
  if (is_flm(conversion.model)) {
    const FlmFile file(conversion.model);
    for (const auto& [key, value] : file.pairs()) pairs[key] = value;
  } else {
    add_chat(pairs, source_chat_template(conversion.model));
  }
  std::string out;
  put(out, pairs.size());
  for (const auto& [key, value] : pairs) {
    put_text(out, key);
    put_text(out, value);
  }
  return out;
}

std::string vocabulary_text(const Conversion& conversion) {
  std::string tokens;
  std::size_t count = 0;
  if (conversion.with_tokenizer) {
    const Tokenizer tokenizer =
        Tokenizer::open(conversion.tokenizer.empty() ? conversion.model : conversion.tokenizer);
    for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string_view text = tokenizer.token_of(static_cast<TokenId>(id));
      if (text.empty()) continue;
      put(tokens, text.size());
      for (const char byte : text) put(tokens, static_cast<unsigned char>(byte));
      put(tokens, id);
      ++count;
    }
  }
  std::string out;
  put(out, count);
  return out + tokens;
}

}  // namespace

Converted convert_to_flm(const Conversion& conversion) {
  if (!conversion.replace) refuse_existing(conversion.out);
  const Checkpoint checkpoint = Checkpoint::open(conversion.model);
  const Config config = read_config(conversion.model);
  refuse_rope_factors(conversion.model);
  std::vector<PlannedTensor> plan = plan_tensors(config, checkpoint);
  if (plan.back().name != "lm_head.weight") {  // FastLLM looks for it in a tied model too
    plan.push_back(plan.front());
    plan.back().name = "lm_head.weight";
  }
  AtomicFile file(conversion.out, conversion.replace);
  std::string head;
  put(head, FlmFile::kVersion);
  file.write(head + pairs_text(conversion) + vocabulary_text(conversion));
  std::string count;
  put(count, plan.size());
  file.write(count);
  for (PlannedTensor& tensor : plan) {
    tensor.dtype = DType::F32;
    std::string entry;
    put_text(entry, tensor.name);
    put(entry, tensor.stored->shape.size());
    for (const std::size_t size : tensor.stored->shape) put(entry, size);
    put(entry, FlmFile::kF32);
    file.write(entry);
    write_tensor(tensor, checkpoint, [&](std::span<const std::byte> piece) { file.write(piece); });
  }
  file.commit();
  Converted result = {plan.size(), file.size(), {}};
  if (conversion.with_tokenizer) {
    result.notes.emplace_back(
        "a .flm holds no merges: text is encoded by the longest match there, into other ids");
  }
  return result;
}

}  // namespace stagecraft
