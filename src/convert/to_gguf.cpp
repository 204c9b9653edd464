// convert_to_gguf: writes keys, vocabulary and tensors as llama.cpp's convert_hf_to_gguf.py does.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/number.h"
#include "base/processors.h"
#include "checkpoint/convert_tensor.h"
#include "convert/convert.h"
#include "convert/gguf_keys.h"
#include "convert/gguf_vocabulary_writer.h"
#include "convert/output_tensors.h"
#include "convert/sources.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/model.h"
#include "formats/gguf/weights.h"
#include "formats/gguf/writer.h"

namespace stagecraft {
namespace {

// "general.file_type": llama.cpp's number for the type of most matrices; nullopt for other types.
std::optional<std::uint32_t> file_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 0;
    case DType::F16:
      return 1;
    case DType::Q4_0:
      return 2;
    case DType::Q4_1:
      return 3;
    case DType::Q8_0:
      return 7;
    case DType::BF16:
      return 32;
    default:
      return std::nullopt;
  }
}

void choose_types(std::vector<OutputTensor>& tensors, const Conversion& conversion,
                  Converted& result) {
  std::size_t n_others = 0;
  for (OutputTensor& tensor : tensors) {
    const bool matrix = tensor.stored->shape.size() == 2;
    if (!matrix) {
      tensor.dtype = DType::F32;
    } else if (conversion.dtype) {
      const bool fits = fits_in(*tensor.stored, *conversion.dtype);
      tensor.dtype = fits ? *conversion.dtype : DType::F16;
      if (!fits) ++n_others;
    }
  }
  if (n_others == 0) return;
  result.notes.push_back(
      fmt::format("{} became F16: {} row length is not a multiple of 32, the block size",
                  counted(n_others, "matrix", "matrices"), n_others == 1 ? "its" : "their"));
}

// The GGUF architecture "llama" stores the rows of q and k as RoPE pairs.
void reorder_heads(std::vector<OutputTensor>& tensors, const Config& config) {
  for (OutputTensor& tensor : tensors) {
    if (tensor.name.find(".q_proj.") != std::string::npos) tensor.pairs = config.n_heads;
    if (tensor.name.find(".k_proj.") != std::string::npos) tensor.pairs = config.n_kv_heads;
  }
}

// quantize() refuses NaN in matrices. This function refuses NaN and infinity in norms and biases,
// which are too small for the check to cost anything.
void refuse_nan(const OutputTensor& tensor, const std::string& where) {
  std::size_t at = 0;
  convert_tensor(*tensor.stored, DType::F32, where, [&](std::span<const std::byte> piece) {
    for (std::size_t i = 0; i < piece.size(); i += sizeof(float), ++at) {
      float value = 0.0f;
      std::memcpy(&value, piece.data() + i, sizeof value);
      if (std::isfinite(value)) continue;
      throw Error("{}: tensor '{}': element {}: expected a finite number, found {}", where,
                  printable(tensor.name), at, value);
    }
  });
}

// Writes the model's name, and what a GGUF file says of the model beside it: its licence, its
// authors, its languages. Other "general." keys are about the file.
void add_description(GgufWriter& writer, const ModelSource& model) {
  constexpr std::string_view kOfTheFile[] = {"general.architecture", "general.alignment",
                                             "general.file_type", "general.quantization_version"};
  const auto* gguf = dynamic_cast<const GgufModel*>(model.file());
  if (gguf == nullptr || !gguf->metadata().has("general.name")) {
    writer.add("general.name", std::string_view(model_name(model)));
  }
  if (gguf == nullptr) return;
  for (const std::string_view key : gguf->metadata().keys()) {
    if (!key.starts_with("general.")) continue;
    if (std::ranges::find(kOfTheFile, key) != std::end(kOfTheFile)) continue;
    writer.add(key, gguf->metadata().at(key));
  }
}

void write_data(AtomicFile& file, const std::vector<OutputTensor>& tensors,
                const Checkpoint& checkpoint, const std::function<void()>& check) {
  ThreadPool threads(usable_cores());
  for (const OutputTensor& tensor : tensors) {
    write_tensor(tensor, checkpoint, threads, file, check);
    file.write(GgufWriter::padding(file.size()));
  }
}

// The tokenizer, and the templates of chats. Adds a note if texts become other tokens in GGUF.
void add_tokenizer(GgufWriter& writer, const SourceTokenizer& source, const Config& config,
                   Converted& result) {
  const std::vector<std::string> differ =
      add_gguf_vocabulary(writer, source, config.vocab_size, config.eos_ids);
  if (!differ.empty()) {
    result.notes.push_back(
        fmt::format("in GGUF, text next to '{}' becomes other tokens, because this token is "
                    "looked for before the text is normalized",
                    printable(differ.front())));
  }
  if (!source.chat_template.empty()) {
    writer.add("tokenizer.chat_template", std::string_view(source.chat_template));
  }
  if (!source.tools_template.empty()) {
    writer.add(fmt::format("tokenizer.chat_template.{}", kToolUse),
               std::string_view(source.tools_template));
  }
}

}  // namespace

Converted convert_to_gguf(const Conversion& conversion) {
  if (!conversion.replace) refuse_existing(conversion.out);
  const Checkpoint checkpoint = Checkpoint::open(conversion.model);
  const ModelDescription description = describe_model(conversion.model);
  const Config config = llama_config(description, conversion.model, "GGUF");
  const std::string where = conversion.model.name();
  Converted result;
  std::vector<OutputTensor> tensors = output_tensors(description.plan, checkpoint);
  choose_types(tensors, conversion, result);
  if (gguf_architecture(config, where) == "llama") reorder_heads(tensors, config);

  GgufWriter writer;
  add_gguf_config(writer, config, where);
  add_description(writer, conversion.model);
  writer.add("general.quantization_version", std::uint32_t{2});
  if (const auto type = file_type(conversion.dtype.value_or(tensors.front().dtype))) {
    writer.add("general.file_type", *type);
  }
  if (conversion.with_tokenizer) {
    const SourceTokenizer tokenizer = source_tokenizer(conversion);
    check_tokenizer(conversion, tokenizer.tokenizer.vocab_size(), description.plan);
    add_tokenizer(writer, tokenizer, config, result);
  } else {
    writer.add("tokenizer.ggml.model", "none");
    add_gguf_end_tokens(writer, config.eos_ids, where);
  }
  note_no_end(conversion, description.plan, result);

  const std::vector<float> factors = gguf_rope_factors(config);
  StoredTensor rope{std::string(kGgufRopeFactors),
                    DType::F32,
                    {factors.size()},
                    std::as_bytes(std::span(factors))};
  if (!factors.empty()) tensors.insert(tensors.begin(), {rope.name, &rope, DType::F32});
  for (const OutputTensor& tensor : tensors) {
    const std::string name = &rope == tensor.stored ? rope.name : gguf_name(tensor.name);
    writer.add_tensor(name, tensor.dtype, tensor.stored->shape);
  }
  const bool quantizes = conversion.dtype && is_quantized(*conversion.dtype);
  for (const OutputTensor& tensor : tensors) {
    if (quantizes && tensor.stored->shape.size() == 1) refuse_nan(tensor, checkpoint.name());
  }
  AtomicFile file(conversion.out, conversion.replace);
  file.write(writer.header());
  write_data(file, tensors, checkpoint, conversion.check);
  file.commit();
  result.n_tensors = tensors.size();
  result.bytes = file.size();
  return result;
}

}  // namespace stagecraft
