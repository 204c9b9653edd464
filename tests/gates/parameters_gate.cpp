// The gate of stage 5.2: the parameters are loaded from the named tensors of a
// checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"
#include "course/worker/config_numbers.h"
#include "model/config_file.h"
#include "tests/gates/model_files.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

// ---- what is asked, and what is right -----------------------------------------------------------

Expected flag(bool value) { return {{1}, {value ? 1.0 : 0.0}, {0.0}, true}; }

// A question about the model in `folder`, without the right answer.
Case question_about(const std::string& name, const fs::path& folder, const Config& config) {
  Case one;
  one.name = name;
  one.request.function = "load_parameters";
  one.request.texts = {{"model", folder.string()}};
  visit_numbers(config, [&](const std::string& member, const char*, auto value) {
    one.request.scalars[member] = static_cast<double>(value);
  });
  one.names = every_name(config);
  return one;
}

// Each parameter must hold the tensor of its name; with tied embeddings, both names mean the one
// table.
Case parameters_case(const std::string& name, const fs::path& folder, const Config& config) {
  Case one = question_about(name, folder, config);
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const bool one_table = config.tied_embeddings && (checkpoint.find(kEmbedding) == nullptr ||
                                                    checkpoint.find(kHead) == nullptr);
  for (const Weight& weight : weights_of(config)) {
    const StoredTensor* tensor = checkpoint.find(weight.name);
    if (tensor == nullptr && one_table) {
      tensor = checkpoint.find(weight.name == kHead ? kEmbedding : kHead);
    }
    if (tensor == nullptr) throw Error("{}: no tensor '{}'", folder.string(), weight.name);
    one.expected[weight.name] = values_of(*tensor);
  }
  one.expected["layers"] = exactly({static_cast<int>(config.n_layers)});
  if (config.tied_embeddings) one.expected["lm_head is the embedding"] = flag(one_table);
  return one;
}

Case fresh_case(const std::string& name, Inputs& inputs, const Config& config,
                const FileOptions& options = {}) {
  return parameters_case(name, write_model(tensors_of(config, inputs), options), config);
}

// ---- what is wrong, in words --------------------------------------------------------------------

// The name of the tensor in the file that has these numbers; empty if there is none.
std::string true_name(const Case& question, const Tensor& got) {
  for (const auto& [name, expected] : question.expected) {
    if (expected.shape.size() == got.shape.size() && agrees(expected, got) && !got.values.empty() &&
        expected.values.size() > 1) {
      return name;
    }
  }
  return {};
}

std::string problem_with_weight(const Case& question, const Weight& weight,
                                const std::map<std::string, Tensor>& outputs) {
  const Expected& expected = question.expected.at(weight.name);
  const auto got = outputs.find(weight.name);
  if (got == outputs.end()) return say("parameter_empty", weight.place, weight.name);
  if (got->second.shape != expected.shape) {
    return say("parameter_shape", weight.place, weight.name, shape_text(expected.shape),
               shape_text(got->second.shape));
  }
  if (agrees(expected, got->second)) return {};
  const std::string other = true_name(question, got->second);
  if (!other.empty()) return say("parameter_holds", weight.place, weight.name, other);
  return diagnose("load_parameters", weight.place, expected, got->second);
}

std::string problem_with_parameters(const Case& question, const Config& config,
                                    const Outcome& outcome) {
  if (const std::string broken = broken_rule(outcome); !broken.empty()) return broken;
  const auto& outputs = outcome.response.outputs;
  const auto layers = outputs.find("layers");
  if (layers == outputs.end() || layers->second.values.size() != 1)
    return say("no_answer", "layers");
  if (layers->second.values[0] != static_cast<float>(config.n_layers)) {
    return say("layers_wrong", config.n_layers, layers->second.values[0]);
  }
  std::string first;
  std::size_t wrong = 0;
  const std::vector<Weight> weights = weights_of(config);
  for (const Weight& weight : weights) {
    const std::string problem = problem_with_weight(question, weight, outputs);
    if (problem.empty()) continue;
    if (wrong++ == 0) first = problem;
  }
  if (wrong > 1) first += "\n  " + say("parameters_wrong", wrong, weights.size());
  if (wrong != 0) return first;
  for (const auto& [name, expected] : question.expected) {
    const auto got = outputs.find(name);
    if (got != outputs.end() && agrees(expected, got->second)) continue;
    if (name == "lm_head is the embedding") {
      return say(expected.values[0] == 1.0 ? "head_is_no_view" : "head_is_embedding");
    }
    return say("parameter_copied", name.substr(0, name.find(' ')));
  }
  return {};
}

bool judge_parameters(const Case& question, const Config& config) {
  return judge_by(question, [=](const Outcome& outcome) {
    return problem_with_parameters(question, config, outcome);
  });
}

// Models of tests/data, in this order; the first one that is wrong ends it.
void judge_tiny(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const fs::path folder = test_data() / "models" / name;
    const Config config = read_config(folder);
    if (!judge_parameters(parameters_case(name, folder, config), config)) return;
  }
}

Config with_every_bias(Config config) {
  config.qkv_bias = config.o_bias = config.mlp_bias = config.qk_norm = true;
  return config;
}

// A file without one of its tensors.
bool judge_missing(const Config& config, std::vector<FileTensor> tensors, const std::string& name) {
  std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
  Naming naming{{name}};
  if (name == kHead || name == kEmbedding) naming.may = {kHead, kEmbedding};  // tied: one table
  return judge_refused(question_about("a file without " + name, write_model(tensors), config),
                       naming);
}

const std::vector<std::size_t>& shape_of(const std::vector<FileTensor>& tensors,
                                         const std::string& name) {
  return std::ranges::find(tensors, name, &FileTensor::name)->shape;
}

// A file in which one of the tensors has another shape.
bool judge_shape(const Config& config, std::vector<FileTensor> tensors, const std::string& name,
                 std::vector<std::size_t> shape, const FileOptions& options = {}) {
  FileTensor& tensor = *std::ranges::find(tensors, name, &FileTensor::name);
  const std::string right = shape_text(tensor.shape);
  tensor.shape = std::move(shape);
  tensor.values = Inputs().tensor(tensor.shape).values;
  const Case one =
      question_about(fmt::format("{} {}, not {}", name, shape_text(tensor.shape), right),
                     write_model(tensors, options), config);
  return judge_refused(one, {{name}});
}

// Each tensor of one layer for which `wanted` is true, and those outside the layers, with one
// column more.
template <class Wanted>
void judge_widened(const Config& config, const std::vector<FileTensor>& tensors, Inputs& inputs,
                   Wanted wanted) {
  const std::string layer = fmt::format("model.layers.{}.", inputs.size(0, config.n_layers - 1));
  for (const FileTensor& tensor : tensors) {
    const bool is_asked =
        tensor.name.starts_with(layer) || !tensor.name.starts_with("model.layers.");
    if (!is_asked || !wanted(tensor.name)) continue;
    std::vector<std::size_t> shape = tensor.shape;
    ++shape.back();
    if (!judge_shape(config, tensors, tensor.name, shape)) return;
  }
}

// ---- the tests ----------------------------------------------------------------------------------

TEST(Parameters, HoldTheTensorsOfTheirNames) {
  Inputs inputs;
  const Config plain = fresh_config(inputs);
  if (!judge_parameters(fresh_case("sizes that are all different", inputs, plain), plain)) return;
  Config square = plain;  // all matrices are square, so only names distinguish them
  square.n_kv_heads = square.n_heads;
  square.dim = square.ffn_dim = square.vocab_size = square.n_heads * square.head_dim;
  judge_parameters(fresh_case("matrices that are all square", inputs, square), square);
}

// More than Llama 3.1 405B has, 126. The numbers of the last ones have three digits.
TEST(Parameters, OfManyLayers) {
  Inputs inputs;
  Config config = fresh_config(inputs);
  config.n_layers = 130;
  config.n_kv_heads = 1;
  config.n_heads = config.head_dim = 2;
  config.dim = 5;
  config.ffn_dim = 7;
  config.vocab_size = 9;
  judge_parameters(fresh_case("a model of 130 layers", inputs, config), config);
}

TEST(Parameters, KeepNothingOfAnotherModel) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  Config other = fresh_config(inputs);
  other.n_layers = 2;
  judge(in_turn("one model after the other",
                {fresh_case("", inputs, config), fresh_case("", inputs, other)}));
}

TEST(Parameters, OfTinyModels) {
  judge_tiny({"llama-mha", "llama-gqa3", "llama-mqa8", "llama-head-dim", "llama-sharded"});
}

TEST(Parameters, AreUsedWhereTheyLieIfTheyAreF32) {
  Inputs inputs;
  for (const char* name :
       {"F32 tensors are not copied", "F32 tensors of another model are not copied"}) {
    const Config config = fresh_config(inputs);
    Case one = fresh_case(name, inputs, config);
    for (const Weight& weight : weights_of(config)) {
      one.expected[weight.name + " lies in the file"] = flag(true);
    }
    judge_parameters(one, config);
  }
}

TEST(Parameters, RefuseATensorThatIsMissing) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  const auto tensors = tensors_of(config, inputs);
  const std::string last = fmt::format("model.layers.{}.", config.n_layers - 1);
  for (const std::string& name : {std::string(kEmbedding), last + "mlp.down_proj.weight",
                                  std::string("model.layers.0.post_attention_layernorm.weight"),
                                  std::string("model.norm.weight"), std::string(kHead)}) {
    if (!judge_missing(config, tensors, name)) return;
  }
}

TEST(Parameters, RefuseAnotherShape) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  const auto tensors = tensors_of(config, inputs);
  for (const std::string& name : {std::string("model.layers.1.self_attn.k_proj.weight"),
                                  std::string("model.layers.0.mlp.down_proj.weight"),
                                  std::string(kEmbedding), std::string("model.norm.weight")}) {
    const std::vector<std::size_t> right = shape_of(tensors, name);
    const bool is_matrix = right.size() == 2;
    const auto turned = is_matrix ? std::vector<std::size_t>{right[1], right[0]}
                                  : std::vector<std::size_t>{right[0], 1};
    if (!judge_shape(config, tensors, name, turned)) return;
    if (is_matrix && !judge_shape(config, tensors, name, {right[0] + 1, right[1]})) return;
  }
  judge_widened(config, tensors, inputs, [](const std::string&) { return true; });
}

TEST(Parameters, RefuseWhatTheConfigHasNoPlaceFor) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  Config more = config;
  more.mlp_bias = true;
  fs::path folder = write_model(tensors_of(more, inputs));
  Case one = question_about("biases, but the config says that there are none", folder, config);
  if (!judge_refused(one, {{"_proj.bias"}})) return;
  more = config;
  ++more.n_layers;
  folder = write_model(tensors_of(more, inputs));
  one = question_about("one layer more than the config says", folder, config);
  judge_refused(one, {{fmt::format("model.layers.{}.", config.n_layers)}});
}

TEST(ParametersBiases, AreLoadedIfTheConfigSaysSo) {
  Inputs inputs;
  const Config config = with_every_bias(fresh_config(inputs));
  judge_parameters(fresh_case("every bias, and norms of q and k", inputs, config), config);
}

TEST(ParametersBiases, OfTinyModels) {
  judge_tiny({"llama-attention-bias", "llama-mlp-bias", "qwen2-window-off", "qwen3-qk-norm"});
}

TEST(ParametersBiases, KeepNothingOfAnotherModel) {
  Inputs inputs;
  const Config config = with_every_bias(fresh_config(inputs));
  const Config other = fresh_config(inputs);
  judge(in_turn("biases, then none, then biases",
                {fresh_case("", inputs, config), fresh_case("", inputs, other),
                 fresh_case("", inputs, config)}));
}

TEST(ParametersBiases, RefuseABiasThatIsMissing) {
  Inputs inputs;
  const Config config = with_every_bias(fresh_config(inputs));
  const std::string last = fmt::format("model.layers.{}.", config.n_layers - 1);
  judge_missing(config, tensors_of(config, inputs), last + "self_attn.k_proj.bias");
}

TEST(ParametersBiases, RefuseAnotherShape) {
  Inputs inputs;
  const Config config = with_every_bias(fresh_config(inputs));
  judge_widened(config, tensors_of(config, inputs), inputs, [](const std::string& name) {
    return name.ends_with(".bias") || name.find("_norm.") != std::string::npos;
  });
}

TEST(ParametersTied, ShareOneTableUnlessTheFileHoldsTwo) {
  judge_tiny({"llama-tied-embed-only", "llama-tied-lm-head-only", "llama-tied-both-differ"});
}

TEST(ParametersTied, ShareOneTableOfFreshFilesToo) {
  Inputs inputs;
  Config config = fresh_config(inputs);
  judge_parameters(fresh_case("not tied: two tables", inputs, config), config);
  config.tied_embeddings = true;
  judge_parameters(fresh_case("tied, but the file holds two tables", inputs, config), config);
  for (const char* stored : {kEmbedding, kHead}) {
    auto tensors = tensors_of(config, inputs);
    std::erase_if(tensors, [&](const FileTensor& tensor) {
      return tensor.name == (stored == kHead ? kEmbedding : kHead);
    });
    const fs::path folder = write_model(tensors);
    judge_parameters(
        parameters_case(fmt::format("tied: one table, called {}", stored), folder, config), config);
  }
}

TEST(ParametersTied, RefuseATableThatIsMissingOrHasAnotherShape) {
  Inputs inputs;
  Config config = fresh_config(inputs);
  config.tied_embeddings = true;
  auto tensors = tensors_of(config, inputs);
  std::erase_if(tensors, [](const FileTensor& tensor) { return tensor.name == kHead; });
  if (!judge_shape(config, tensors, kEmbedding, {config.vocab_size + 1, config.dim})) return;
  judge_missing(config, tensors, kEmbedding);
}

TEST(ParametersInF32, RefuseAnotherShapeOf16Bits) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  const auto tensors = tensors_of(config, inputs);
  for (const DType dtype : {DType::BF16, DType::F16}) {
    if (!judge_shape(config, tensors, "model.layers.1.mlp.up_proj.weight",
                     {config.dim, config.ffn_dim}, {{dtype}})) {
      return;
    }
  }
}

TEST(ParametersInF32, FromF16AndBf16) {
  judge_tiny({"llama-bf16", "llama-f16", "llama-mixed-dtypes"});
  Inputs inputs;
  const Config config = fresh_config(inputs);
  for (const FileOptions& options :
       {FileOptions{{DType::BF16}}, FileOptions{{DType::F16}},
        FileOptions{{DType::F16, DType::F32, DType::BF16, DType::F32, DType::F32}}}) {
    std::string name = "of";
    for (const DType dtype : options.dtypes) name += fmt::format(" {}", dtype_name(dtype));
    judge_parameters(fresh_case(name, inputs, config, options), config);
  }
}

TEST(ParametersInF32, FromQuantisedTypes) {  // a file as from ./stage pull
  for (const auto& [name, model] :
       {std::pair("a quantised GGUF file", std::string("whole")),
        std::pair("a GGUF file in types of 4 bits", std::string("four-bits"))}) {
    const fs::path folder = test_data() / "gguf";
    const fs::path values = folder / (model + "-values");
    const Config config = read_config(values);
    Case one = parameters_case(name, values, config);
    one.request.texts["model"] = (folder / (model + ".gguf")).string();
    judge_parameters(one, config);
  }
}

TEST(ParametersInF32, RefuseEveryOtherDtype) {
  Inputs inputs;
  const Config config = fresh_config(inputs);
  const auto tensors = tensors_of(config, inputs);
  fs::path folder = write_model(tensors, {{DType::BF16}});
  Case one = parameters_case("BF16", folder, config);
  if (!judge_parameters(one, config)) return;
  folder = write_model(tensors, {{DType::I16}});
  one = question_about("I16", folder, config);
  std::vector<std::string> all;  // any of them may be reported
  for (const auto& tensor : tensors) all.push_back(tensor.name);
  judge_refused(one, {all});
  folder = write_model(tensors, {{DType::BF16, DType::I16}});
  one = question_about("BF16 and I16", folder, config);
  std::vector<std::string> wrong;
  for (std::size_t i = 1; i < tensors.size(); i += 2) wrong.push_back(tensors[i].name);
  judge_refused(one, {wrong});
}

}  // namespace
}  // namespace stagecraft::stages
