#include "checkpoint/convert_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "operators/float_to_half.h"
#include "operators/quantize.h"
#include "operators/read_row.h"

namespace stagecraft {
namespace {

constexpr std::size_t kPiece = 1u << 16;  // elements; a multiple of every block size

// The elements of a piece of a tensor as f32.
void to_f32(StoredTensor piece, std::vector<float>& out, const std::string& where) {
  if (!is_readable(piece.dtype)) {
    throw Error("{}: tensor '{}': expected F32, F16, BF16 or a quantised type, found {}", where,
                printable(piece.name), dtype_name(piece.dtype));
  }
  out.resize(element_count(piece));
  piece.shape = {1, out.size()};
  read_row(piece, 0, out);
}

// first: the index of the first value, for messages; so in from_f32
void to_half(std::span<const float> values, DType dtype, std::span<std::byte> out,
             std::size_t first) {
  std::vector<std::uint16_t> bits(values.size());
  (dtype == DType::F16 ? f32_to_f16 : f32_to_bf16)(values, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const unsigned largest = dtype == DType::F16 ? 0x7c00u : 0x7f80u;
    if ((bits[i] & 0x7fffu) < largest || !std::isfinite(values[i])) continue;
    throw Error("element {}: expected a number that {} can hold, found {}", first + i,
                dtype_name(dtype), values[i]);
  }
  std::memcpy(out.data(), bits.data(), out.size());
}

void from_f32(std::span<const float> values, DType dtype, std::span<std::byte> out,
              std::size_t first) {
  if (dtype == DType::F32) {
    std::memcpy(out.data(), values.data(), out.size());
  } else if (dtype == DType::F16 || dtype == DType::BF16) {
    to_half(values, dtype, out, first);
  } else {
    quantize(dtype, values, out, first);
  }
}

// The piece that one thread converts at a time.
struct Piece {
  std::vector<float> values;
  std::vector<std::byte> out;

  // Converts the bytes [at, at + n_bytes) of the tensor, or up to its end.
  void convert(const StoredTensor& tensor, std::size_t at, std::size_t n_bytes, DType dtype,
               const std::string& where) {
    StoredTensor piece = tensor;
    piece.bytes = tensor.bytes.subspan(at, std::min(n_bytes, tensor.bytes.size() - at));
    to_f32(piece, values, where);
    out.resize(bytes_as(piece, dtype));
    const DTypeBlock block = dtype_block(tensor.dtype);
    try {
      from_f32(values, dtype, out, at / block.bytes * block.elements);
    } catch (const Error& e) {
      throw Error("{}: tensor '{}': {}", where, printable(tensor.name), e.what());
    }
  }
};

}  // namespace

bool fits_in(const StoredTensor& tensor, DType dtype) {
  return !tensor.shape.empty() && tensor.shape.back() % dtype_block(dtype).elements == 0;
}

std::size_t bytes_as(const StoredTensor& tensor, DType dtype) {
  const DTypeBlock block = dtype_block(dtype);
  return element_count(tensor) / block.elements * block.bytes;
}

void convert_tensor(const StoredTensor& tensor, DType dtype, const std::string& where,
                    const std::function<void(std::span<const std::byte>)>& sink,
                    ThreadPool* threads) {
  if (tensor.dtype == dtype) return sink(tensor.bytes);
  const DTypeBlock block = dtype_block(tensor.dtype);
  const std::size_t piece_bytes = kPiece / block.elements * block.bytes;
  const std::size_t n_pieces = (tensor.bytes.size() + piece_bytes - 1) / piece_bytes;
  std::vector<Piece> pieces(threads == nullptr ? 1 : threads->size());
  for (std::size_t first = 0; first < n_pieces; first += pieces.size()) {
    const std::size_t n = std::min(pieces.size(), n_pieces - first);
    auto convert = [&](std::size_t i) {
      if (i < n) pieces[i].convert(tensor, (first + i) * piece_bytes, piece_bytes, dtype, where);
    };
    threads == nullptr ? convert(0) : threads->run(convert);
    for (std::size_t i = 0; i < n; ++i) sink(pieces[i].out);
  }
}

}  // namespace stagecraft
