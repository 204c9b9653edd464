// The gate of stage 5.3: config.json is parsed into the model's Config.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/mapped_file.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"
#include "course/worker/config_numbers.h"
#include "model/config_fields.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;

// ---- what is asked, and what is right -----------------------------------------------------------

Expected one_number(double value, double allowed = 0.0) { return {{1}, {value}, {allowed}, true}; }

template <class Numbers>
Expected list(const Numbers& numbers) {
  return {{numbers.size()},
          {numbers.begin(), numbers.end()},
          std::vector<double>(numbers.size(), 0.0),
          true};
}

Case config_case(const std::string& name, const nlohmann::json& json, const Config& right) {
  Case one;
  one.name = name;
  one.request.function = "parse_config";
  one.request.texts = {{"config", json.dump()}};
  visit_numbers(right, [&](const std::string& member, const char* field, auto value) {
    const auto number = static_cast<double>(value);
    one.expected[member] = one_number(number, std::fabs(number) * 0x1p-23);
    one.names.emplace_back(field);
  });
  one.expected["windows"] = list(right.windows);
  std::vector<TokenId> ends = right.eos_ids;
  std::ranges::sort(ends);  // sorted like the worker's: their order means nothing
  one.expected["eos_ids"] = list(ends);
  return one;
}

// A model whose sizes are all different, so that a confusion of two of them is found.
struct Model {
  nlohmann::json json;
  Config right;
};

Model fresh_model(Inputs& inputs, const std::string& family) {
  Config c;
  c.model_type = family;
  c.n_kv_heads = inputs.size(2, 4);
  c.n_heads = c.n_kv_heads * inputs.size(2, 3);  // 4 to 12
  c.head_dim = 2 * inputs.size(7, 9);            // 14 to 18
  c.n_layers = inputs.size(20, 29);
  c.dim = c.n_heads * 2 * inputs.size(11, 15);  // 88 to 360; never n_heads * head_dim
  c.ffn_dim = inputs.size(400, 800);
  c.vocab_size = inputs.size(263'000, 300'000);  // larger than that of Gemma 3
  c.max_seq_len = inputs.size(3000, 4000);
  c.norm_eps = inputs.size(0, 1) == 0 ? 3e-5f : 2e-4f;
  c.rope.theta = 1000.0 * static_cast<double>(inputs.size(20, 90));
  c.windows.assign(c.n_layers, 0);
  c.eos_ids = {static_cast<TokenId>(inputs.size(30, 60)), 7};
  nlohmann::json json = {{"model_type", family},
                         {"vocab_size", c.vocab_size},
                         {"hidden_size", c.dim},
                         {"intermediate_size", c.ffn_dim},
                         {"num_hidden_layers", c.n_layers},
                         {"num_attention_heads", c.n_heads},
                         {"num_key_value_heads", c.n_kv_heads},
                         {"head_dim", c.head_dim},
                         {"max_position_embeddings", c.max_seq_len},
                         {"rms_norm_eps", static_cast<double>(c.norm_eps)},
                         {"rope_theta", c.rope.theta},
                         {"eos_token_id", c.eos_ids},
                         {"torch_dtype", "bfloat16"},
                         {"bos_token_id", 1}};
  if (family == "mistral") json["sliding_window"] = nullptr;
  const std::set<std::size_t> sizes = {
      c.n_kv_heads,           c.n_heads,    c.head_dim,   c.n_layers, c.dim, c.ffn_dim,
      c.n_heads * c.head_dim, c.vocab_size, c.max_seq_len};
  must_show(sizes.size() == 9, "sizes that are all different");
  return {json, c};
}

// ---- what is wrong, in words --------------------------------------------------------------------

std::string number_text(const std::string& member, double value) {
  static const std::set<std::string> kFlags = {"tied_embeddings", "qkv_bias", "o_bias", "mlp_bias",
                                               "qk_norm"};
  if (kFlags.contains(member) && (value == 0.0 || value == 1.0)) {
    return value == 0.0 ? "false" : "true";
  }
  return fmt::format("{:.7g}", value);
}

template <class Numbers>
std::string text(const std::string& member, const Numbers& numbers) {
  std::vector<std::string> texts;
  for (const auto value : numbers) texts.push_back(number_text(member, value));
  return texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", "));
}

// The source of a value: "config.json says "num_key_value_heads": 2", or that it has no such key.
std::string source_of(const Case& question, const std::string& member) {
  std::string field = member == "eos_ids" ? "eos_token_id" : "sliding_window";
  Config any;
  visit_numbers(any, [&](const std::string& name, const char* of, auto) {
    if (name == member) field = of;
  });
  const nlohmann::json json = nlohmann::json::parse(question.request.texts.at("config"));
  if (!json.contains(field)) return say("config_silent", field);
  return say("config_says", fmt::format("\"{}\": {}", field, json.at(field).dump()));
}

std::string wrong_fields(const Case& question, const Outcome& outcome) {
  const std::string problem = broken_rule(outcome);
  if (!problem.empty()) return problem;
  std::string lines;
  for (const auto& [member, expected] : question.expected) {
    const auto got = outcome.response.outputs.find(member);
    if (got == outcome.response.outputs.end()) return say("no_answer", member);
    if (agrees(expected, got->second)) continue;
    if (!lines.empty()) lines += "\n  ";
    lines += say("config_field", member, text(member, expected.values),
                 text(member, got->second.values), source_of(question, member));
  }
  return lines;
}

bool judge_config(const Case& question) {
  return judge_by(question,
                  [=](const Outcome& outcome) { return wrong_fields(question, outcome); });
}
bool judge_config(const std::string& name, const Model& model) {
  return judge_config(config_case(name, model.json, model.right));
}

// ---- the tests ----------------------------------------------------------------------------------

TEST(Config, TakesEverySizeFromItsName) {
  Inputs inputs;
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    Model model = fresh_model(inputs, family);
    model.right.qkv_bias = model.right.model_type == "qwen2";
    model.right.qk_norm = model.right.model_type == "qwen3";
    if (!judge_config(fmt::format("a {} with every size", family), model)) return;
  }
}

TEST(Config, FillsInWhatAFileDoesNotSay) {
  Inputs inputs;
  Model model = fresh_model(inputs, "llama");
  model.json.erase("head_dim");
  model.right.head_dim = model.right.dim / model.right.n_heads;
  if (!judge_config("no head_dim", model)) return;

  model.json["num_key_value_heads"] = nullptr;
  model.right.n_kv_heads = model.right.n_heads;
  judge_config("num_key_value_heads: null", model);
  model.json.erase("num_key_value_heads");
  judge_config("no num_key_value_heads", model);
  model.json["head_dim"] = nullptr;
  judge_config("head_dim: null", model);

  model.json.erase("rms_norm_eps");
  model.right.norm_eps = 1e-6f;
  judge_config("no rms_norm_eps", model);
  model.json.erase("max_position_embeddings");
  model.right.max_seq_len = 2048;
  judge_config("no max_position_embeddings", model);

  model = fresh_model(inputs, "mistral");
  model.json.erase("num_key_value_heads");
  model.json["num_attention_heads"] = model.right.n_heads = 24;
  model.right.n_kv_heads = 8;
  judge_config("a mistral without num_key_value_heads", model);
  model = fresh_model(inputs, "qwen3");
  model.json.erase("head_dim");
  model.right.head_dim = 128;
  model.right.qk_norm = true;
  judge_config("a qwen3 without head_dim", model);
}

TEST(Config, ReadsTheFlags) {
  Inputs inputs;
  struct Row {
    const char* family;
    nlohmann::json flags;
    bool tied, qkv, o, mlp, qk_norm;
  };
  const std::vector<Row> rows = {
      {"llama", {{"tie_word_embeddings", true}}, true, false, false, false, false},
      {"llama", {{"tie_word_embeddings", false}}, false, false, false, false, false},
      {"llama", {{"attention_bias", true}}, false, true, true, false, false},
      {"llama", {{"mlp_bias", true}}, false, false, false, true, false},
      {"mistral",
       {{"attention_bias", true}, {"mlp_bias", true}},
       false,
       false,
       false,
       false,
       false},
      {"qwen2", {{"tie_word_embeddings", true}}, true, true, false, false, false},
      {"qwen2", {{"attention_bias", true}}, false, true, false, false, false},
      {"qwen3", {{"attention_bias", false}}, false, false, false, false, true},
      {"qwen3", {{"attention_bias", true}}, false, true, true, false, true},
  };
  for (const Row& row : rows) {
    Model model = fresh_model(inputs, row.family);
    model.json.update(row.flags);
    model.right.tied_embeddings = row.tied;
    model.right.qkv_bias = row.qkv;
    model.right.o_bias = row.o;
    model.right.mlp_bias = row.mlp;
    model.right.qk_norm = row.qk_norm;
    if (!judge_config(fmt::format("{} with {}", row.family, row.flags.dump()), model)) return;
  }
}

TEST(Config, ReadsTheFilesOfTinyModels) {
  for (const char* name : {"llama-mha", "llama-gqa3", "llama-mqa8", "llama-head-dim",
                           "llama-config-defaults", "llama-tied-embed-only", "llama-large-eps",
                           "mistral-window4", "qwen2-layer-types", "qwen3-qk-norm"}) {
    const std::string path = test_data() / "models" / name / "config.json";
    const std::string file = read_text_file(path, kMaxConfigBytes);
    const Config right = parse_config(file, path);  // ours; with it, these models run as in PyTorch
    if (!judge_config(config_case(name, nlohmann::json::parse(file), right))) return;
  }
}

TEST(Config, KeepsNothing) {
  Inputs inputs;
  const auto fresh = [&](const char* family) {
    Model model = fresh_model(inputs, family);
    model.right.qkv_bias = model.right.model_type == "qwen2";
    model.right.qk_norm = model.right.model_type == "qwen3";
    return config_case(family, model.json, model.right);
  };
  judge(
      in_turn("one config.json after the other", {fresh("llama"), fresh("qwen3"), fresh("qwen2")}));
}

TEST(Config, RefusesByName) {
  Inputs inputs;
  const Model model = fresh_model(inputs, "llama");
  const auto judge_without = [&](const std::string& field, nlohmann::json wrong,
                                 std::vector<std::string> may = {}) {
    may.emplace_back("model_type");
    nlohmann::json json = model.json;
    json.erase(field);
    const bool missing = wrong.is_null();
    if (!missing) json[field] = std::move(wrong);
    Case one = config_case(missing ? "no " + field : field + ": " + json[field].dump(), json, {});
    one.expected.clear();
    return judge_refused(one, {{field}, may});
  };
  if (!judge_without("vocab_size", {})) return;
  // A message may also name the keys from which the missing number could be computed.
  judge_without("hidden_size", {}, {"num_attention_heads", "head_dim"});
  judge_without("intermediate_size", {});
  judge_without("num_hidden_layers", {});
  judge_without("num_attention_heads", {}, {"hidden_size", "num_key_value_heads", "head_dim"});
  judge_without("hidden_size", "192", {"num_attention_heads", "head_dim"});
  judge_without("intermediate_size", -3);
  judge_without("num_hidden_layers", 0);
  judge_without("num_hidden_layers", kMaxLayers + 1);
  judge_without("rms_norm_eps", "small");
  judge_without("head_dim", 15, {"hidden_size", "num_attention_heads"});  // RoPE rotates pairs

  nlohmann::json json = model.json;
  json["num_key_value_heads"] = 2 * model.right.n_heads;
  Case more = config_case("more key heads than heads", json, {});
  more.expected.clear();
  judge_refused(more, {{"num_key_value_heads", "num_attention_heads"}, {"model_type"}});
  json = model.json;
  json.erase("head_dim");
  json["hidden_size"] = model.right.n_heads * 15;
  Case odd = config_case("no head_dim, and hidden_size / num_attention_heads is 15", json, {});
  odd.expected.clear();
  judge_refused(odd, {{"head_dim"}, {"model_type", "hidden_size", "num_attention_heads"}});
  json = model.json;
  json["num_key_value_heads"] = model.right.n_heads - 1;
  Case one = config_case("key heads that do not divide the heads", json, {});
  one.expected.clear();
  judge_refused(one, {{"num_key_value_heads", "num_attention_heads"}, {"model_type"}});
  json = model.json;
  json.erase("head_dim");
  json["hidden_size"] = model.right.dim + 1;
  one = config_case("heads that do not divide the width", json, {});
  one.expected.clear();
  judge_refused(one, {{"hidden_size", "num_attention_heads", "head_dim"}, {"model_type"}});
}

}  // namespace
}  // namespace stagecraft::stages
