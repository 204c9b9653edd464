// convert_to_flm: writes a model as FastLLM's torch2flm.py does.
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "base/processors.h"
#include "checkpoint/put_number.h"
#include "convert/convert.h"
#include "convert/output_tensors.h"
#include "convert/sources.h"
#include "formats/flm/model.h"
#include "model/config_file.h"
#include "text/chat_format.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

void put(std::string& out, std::size_t value) {
  put_number(out, static_cast<std::uint32_t>(value));
}

void put_text(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

// The value as Python prints it.
std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_null() ? "None" : json_text(value);
}

// Adds the four keys of a chat if the template is ChatML, or nothing if there is no template.
// Returns false for another template, which these keys cannot express.
bool add_chat(std::map<std::string, std::string>& pairs, const ModelSource& model,
              const Tokenizer& tokenizer) {
  if (read_chat_template(model).text.empty()) return true;
  const ChatFormat format = ChatFormat::open(model, tokenizer);
  if (!format.is_chatml()) return false;
  const std::string user_role = fmt::format("{}user\n", kChatStart);
  const std::string asked = format.text({{{"user", "Who?"}}}, false).bytes();
  pairs["pre_prompt"] = asked.substr(0, asked.rfind(user_role));  // the template's system prompt
  pairs["user_role"] = user_role;
  pairs["bot_role"] = fmt::format("{}\n{}assistant\n", kChatEnd, kChatStart);
  pairs["history_sep"] = fmt::format("{}\n", kChatEnd);
  return true;
}

// FastLLM expects a tensor of this name even if the embeddings are tied.
void add_head(std::vector<OutputTensor>& tensors) {
  if (tensors.back().name == "lm_head.weight") return;
  tensors.push_back(tensors.front());
  tensors.back().name = "lm_head.weight";
}

std::string pairs_text(const Conversion& conversion, const Plan& plan,
                       const std::optional<Tokenizer>& tokenizer, std::vector<std::string>& notes) {
  const std::string where = conversion.model.name();
  std::map<std::string, std::string> pairs;
  auto config = json_value(config_text(conversion.model).text);
  config.erase("quantization_config");  // matrices are no longer written in parts
  // A generation_config.json may name more of them than the config.
  if (!plan.eos_ids.empty()) config["eos_token_id"] = plan.eos_ids;
  for (const auto& [key, value] : config.items()) pairs[key] = value_text(value);
  if (const auto* flm = dynamic_cast<const FlmModel*>(conversion.model.file())) {
    for (const auto& [key, value] : flm->contents().pairs()) pairs[key] = value;
  } else if (tokenizer && !add_chat(pairs, source_of_template(conversion), *tokenizer)) {
    notes.emplace_back("the chat template was left out: a .flm file can express only ChatML");
  }
  std::string out;
  put(out, pairs.size());
  for (const auto& [key, value] : pairs) {
    put_text(out, key);
    put_text(out, value);
  }
  return out;
}

std::string vocabulary_text(const std::optional<Tokenizer>& tokenizer) {
  std::string tokens;
  std::size_t count = 0;
  for (std::size_t id = 0; tokenizer && id < tokenizer->vocab_size(); ++id) {
    const std::string_view text = tokenizer->token_of(static_cast<TokenId>(id));
    if (text.empty()) continue;
    put(tokens, text.size());
    for (const char byte : text) put(tokens, static_cast<unsigned char>(byte));
    put(tokens, id);
    ++count;
  }
  std::string out;
  put(out, count);
  return out + tokens;
}

}  // namespace

Converted convert_to_flm(const Conversion& conversion) {
  if (!conversion.replace) refuse_existing(conversion.out);
  const Checkpoint checkpoint = Checkpoint::open(conversion.model);
  const ModelDescription description = describe_model(conversion.model);
  const bool chatglm = description.plan.model_type == "chatglm";  // FastLLM reads it unchanged
  if (!chatglm) llama_config(description, conversion.model, ".flm");
  if (description.config && !description.config->rope.factors.empty()) {
    throw Error("{}: tensor 'rope_freqs.weight': a .flm file has no place for RoPE factors",
                conversion.model.name());
  }
  std::vector<OutputTensor> tensors = output_tensors(description.plan, checkpoint);
  if (!chatglm) add_head(tensors);
  std::optional<Tokenizer> tokenizer;
  if (conversion.with_tokenizer) {
    tokenizer = Tokenizer::open(conversion.tokenizer.value_or(conversion.model));
    check_tokenizer(conversion, tokenizer->vocab_size(), description.plan);
  }
  Converted result = {tensors.size(), 0, {}};
  note_no_end(conversion, description.plan, result);
  AtomicFile file(conversion.out, conversion.replace);
  std::string head;
  put(head, FlmFile::kVersion);
  file.write(head + pairs_text(conversion, description.plan, tokenizer, result.notes) +
             vocabulary_text(tokenizer));
  std::string count;
  put(count, tensors.size());
  file.write(count);
  ThreadPool threads(usable_cores());
  for (OutputTensor& tensor : tensors) {
    tensor.dtype = DType::F32;
    std::string entry;
    put_text(entry, tensor.name);
    put(entry, tensor.stored->shape.size());
    for (const std::size_t size : tensor.stored->shape) put(entry, size);
    put(entry, FlmFile::kF32);
    file.write(entry);
    write_tensor(tensor, checkpoint, threads, file, conversion.check);
  }
  file.commit();
  result.bytes = file.size();
  if (conversion.with_tokenizer) {
    result.notes.emplace_back(
        "a .flm file holds no merges: its readers encode text by the longest match, into other "
        "ids");
  }
  return result;
}

}  // namespace stagecraft
