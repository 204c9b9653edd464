#include "formats/gguf/writer.h"

#include <bit>

#include "checkpoint/put_number.h"
#include "formats/gguf/file.h"

namespace stagecraft {
namespace {

using Type = GgufValueType;

void put_text(std::string& out, std::string_view text) {
  put_number<std::uint64_t>(out, text.size());
  out += text;
}

void put_array(std::string& out, Type type, std::size_t count) {
  put_number(out, static_cast<std::uint32_t>(type));
  put_number<std::uint64_t>(out, count);
}

}  // namespace

void GgufWriter::begin(std::string_view key, Type type) {
  put_text(pairs_, key);
  put_number(pairs_, static_cast<std::uint32_t>(type));
  ++n_pairs_;
}

void GgufWriter::add(std::string_view key, std::uint32_t value) {
  begin(key, Type::U32);
  put_number(pairs_, value);
}

void GgufWriter::add(std::string_view key, float value) {
  begin(key, Type::F32);
  put_number(pairs_, std::bit_cast<std::uint32_t>(value));
}

void GgufWriter::add(std::string_view key, bool value) {
  begin(key, Type::Bool);
  put_number<std::uint8_t>(pairs_, value ? 1 : 0);
}

void GgufWriter::add(std::string_view key, std::string_view value) {
  begin(key, Type::Text);
  put_text(pairs_, value);
}

void GgufWriter::add(std::string_view key, const std::vector<std::string>& values) {
  begin(key, Type::Array);
  put_array(pairs_, Type::Text, values.size());
  for (const std::string& value : values) put_text(pairs_, value);
}

void GgufWriter::add(std::string_view key, const std::vector<std::int32_t>& values) {
  begin(key, Type::Array);
  put_array(pairs_, Type::I32, values.size());
  for (const std::int32_t value : values) put_number(pairs_, static_cast<std::uint32_t>(value));
}

void GgufWriter::add(std::string_view key, const std::vector<float>& values) {
  begin(key, Type::Array);
  put_array(pairs_, Type::F32, values.size());
  for (const float value : values) put_number(pairs_, std::bit_cast<std::uint32_t>(value));
}

void GgufWriter::add(std::string_view key, const GgufValue& value) {
  begin(key, value.is_array() ? Type::Array : value.type());
  if (value.is_array()) put_array(pairs_, value.type(), value.count());
  pairs_.append(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
}

void GgufWriter::add_tensor(std::string_view name, DType dtype,
                            std::span<const std::size_t> shape) {
  put_text(tensors_, name);
  put_number<std::uint32_t>(tensors_, static_cast<std::uint32_t>(shape.size()));
  for (std::size_t i = shape.size(); i-- > 0;) {  // the innermost first
    put_number<std::uint64_t>(tensors_, shape[i]);
  }
  put_number<std::uint32_t>(tensors_, gguf_type(dtype));
  put_number<std::uint64_t>(tensors_, data_size_);
  data_size_ += byte_size(dtype, shape, name);
  data_size_ += padding(data_size_).size();
  ++n_tensors_;
}

std::string GgufWriter::put_together(std::uint64_t n_tensors, std::string_view tensors) const {
  std::string out(GgufFile::kMagic);
  put_number<std::uint32_t>(out, 3);
  put_number(out, n_tensors);
  put_number(out, n_pairs_);
  out += pairs_;
  out += tensors;
  return out + padding(out.size());
}

std::string GgufWriter::header() const { return put_together(n_tensors_, tensors_); }
std::string GgufWriter::header_without_tensors() const { return put_together(0, ""); }

std::string GgufWriter::padding(std::size_t size) {
  return std::string((kAlignment - size % kAlignment) % kAlignment, '\0');
}

}  // namespace stagecraft
