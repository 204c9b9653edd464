// A folder with quantised matrices gives the same results as a folder with the dequantised numbers
// of the reference (reference/quantized_folders.py), and is converted without loss.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "convert/convert.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuantizedFolders[] = {
    "gptq",         "gptq-act-order",   "gptq-v2",    "awq",           "packed",
    "packed-zeros", "packed-act-order", "fp8-blocks", "fp8-one-scale", "mxfp4"};

fs::path quantized(const std::string& name) {
  return fs::path(TEST_DATA "/formats/quantized") / name;
}

// Works for the CPU backend too, which does not show the results of steps.
std::vector<float> pass_logits(Engine engine) {
  Matrix<float> logits(kEightIds.size(), engine.plan().vocab_size);
  const auto sequence = engine.make_sequence(kEightIds.size());
  const Input input{sequence.get(), kEightIds, kEightIds.size()};
  engine.forward({&input, 1}, logits.view());
  return {logits.data(), logits.data() + logits.rows() * logits.cols()};
}

// Writes the same model unquantised: its own plain tensors, and the numbers of the reference for
// the others.
void write_plain_folder(const fs::path& folder, const std::string& name) {
  convert_to_folder(
      {.model = quantized(name), .out = folder, .dtype = DType::F32, .with_tokenizer = false});
  const SafetensorsFile file(folder / "model.safetensors");
  const SafetensorsFile expected(quantized(name) / "expected.safetensors");
  std::vector<StoredTensor> tensors = file.tensors();
  for (StoredTensor& tensor : tensors) {
    if (const StoredTensor* numbers = expected.find(tensor.name)) tensor = *numbers;
  }
  write_safetensors(folder / "model.safetensors", tensors, {});
}

TEST(QuantizedModel, GivesTheLogitsOfTheReferencesNumbersBitForBit) {
  for (const std::string name : kQuantizedFolders) {
    const TemporaryFolder folder;
    write_plain_folder(folder.path() / "whole", name);
    EXPECT_TRUE(same_bits(pass_logits(textbook_engine(quantized(name))),
                          pass_logits(textbook_engine(folder.path() / "whole"))))
        << name;
  }
}

// The CPU backend multiplies F32 and BF16 weights with unrounded activations, but integer weights
// with rounded ones. cpu_pass_test.cpp tests the accuracy of the second case; here, a GGUF file
// with the same blocks must give the same bits.
TEST(QuantizedModel, RunsOnTheCpuBackend) {
  const TemporaryFolder folder;
  const fs::path gguf = folder.path() / "model.gguf";
  for (const std::string name : kQuantizedFolders) {
    const Checkpoint checkpoint = Checkpoint::open(quantized(name));
    const std::vector<float> found = pass_logits(cpu_engine(quantized(name)));
    const SafetensorsFile in_parts(quantized(name) / "expected.safetensors");
    if (!is_quantized(checkpoint.find(in_parts.tensors()[0].name)->dtype)) {
      const std::vector<float> expected = pass_logits(textbook_engine(quantized(name)));
      double error = 0.0, size = 0.0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        error += std::pow(found[i] - expected[i], 2);
        size += std::pow(expected[i], 2);
      }
      EXPECT_LT(std::sqrt(error / size), 1e-5) << name;
    } else {
      convert_to_gguf(
          {.model = quantized(name), .out = gguf, .with_tokenizer = false, .replace = true});
      EXPECT_TRUE(same_bits(found, pass_logits(cpu_engine(gguf)))) << name;
    }
  }
}

TEST(QuantizedModel, IsConvertedWithoutALoss) {
  const TemporaryFolder folder;
  const fs::path gguf = folder.path() / "model.gguf";
  for (const std::string name : kQuantizedFolders) {
    const std::vector<float> expected = pass_logits(textbook_engine(quantized(name)));
    const fs::path whole = folder.path() / name;
    convert_to_folder({.model = quantized(name), .out = whole, .with_tokenizer = false});
    EXPECT_TRUE(same_bits(pass_logits(textbook_engine(whole)), expected)) << name;
    if (name == "mxfp4") continue;  // gpt-oss is not written as GGUF
    convert_to_gguf(
        {.model = quantized(name), .out = gguf, .with_tokenizer = false, .replace = true});
    EXPECT_TRUE(same_bits(pass_logits(textbook_engine(gguf)), expected)) << name;
    if (name == "gptq") {
      const Checkpoint checkpoint = Checkpoint::open(gguf);
      const StoredTensor* down = checkpoint.find("model.layers.0.mlp.down_proj.weight");
      ASSERT_NE(down, nullptr);
      EXPECT_EQ(down->dtype, DType::Q4_0);
    }
  }
}

// Tests every architecture. An architecture that did not check the field would still refuse the
// weights, but only by their names.
TEST(QuantizedModel, IsRefusedByTheFieldWhereTheConfigSaysWhatIsNotRead) {
  for (const std::string& name : tiny_model_names()) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "model";
    fs::copy(TEST_DATA "/models/" + name, path);
    std::string config = read_file(path / "config.json");
    write_file(path / "config.json",
               R"({"quantization_config": {"quant_method": "aqlm"}, )" + config.substr(1));
    try {
      textbook_engine(path);
      ADD_FAILURE() << name << " opens";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("config.json: quantization_config: 'quant_method'"),
                std::string::npos)
          << name << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace stagecraft
