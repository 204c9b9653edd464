#include "backends/cpu/gated_panels.h"

namespace stagecraft {
namespace {

// Adds these columns of a bias to n rows of a tile. A null bias adds nothing.
void add_bias(const Kernels& k, const float* bias, Range columns, std::size_t n, float* tile) {
  for (std::size_t i = 0; bias != nullptr && i < n; ++i) {
    k.add(bias + columns.begin, columns.size(), tile + i * kPanelOutputs);
  }
}

// Computes f(gate) * up of two tiles and writes it. If it is rounded, all rows are computed before
// the first is rounded: a load would have to wait for a store just before it.
void write_gated(const Kernels& k, const ThreadSlice& slice, const GatedProduct& product,
                 float* gate, const float* up, Range rows, Range columns, const GatedOut& out) {
  const auto join = [&](std::size_t i, std::size_t n, float* to) {
    if (product.limit != 0.0f) {
      k.clamped_swiglu(gate + i, up + i, n, product.alpha, product.limit, to);
    } else {
      k.activate[static_cast<std::size_t>(product.function)](gate + i, up + i, n, to);
    }
  };
  if (!is_rounded(out.types)) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      join(r * kPanelOutputs, columns.size(), &out.f32(rows.begin + r, columns.begin));
    }
    return;
  }
  join(0, rows.size() * kPanelOutputs, gate);
  for (const ActivationType type : kRoundedTypes) {
    if (!has(out.types, type)) continue;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      slice.round_part(gate + r * kPanelOutputs, type, rows.begin + r, columns,
                       product.gate.outputs, *out.rounded);
    }
  }
}

}  // namespace

void gated_panels(const Kernels& kernels, const ThreadSlice& slice, const GatedProduct& product,
                  const Rows& x, Range panels, Range rows, const GatedOut& out) {
  const PanelMatrix &gate = product.gate, &up = product.up;
  const std::size_t most = std::min(slice.max_rows(gate), slice.max_rows(up));
  float* const g = slice.scratch().tile.data();
  float* const u = g + kMostTileRows * kPanelOutputs;
  for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
    const std::size_t output = panel * kPanelOutputs;
    const Range columns{output, std::min(output + kPanelOutputs, gate.outputs)};
    for (std::size_t r = rows.begin; r < rows.end; r += most) {
      const std::size_t n = std::min(most, rows.end - r);
      slice.tile_of_each(gate, up, panel, x, r, n, g, u, rows);
      add_bias(kernels, product.gate_bias, columns, n, g);
      add_bias(kernels, product.up_bias, columns, n, u);
      write_gated(kernels, slice, product, g, u, {r, r + n}, columns, out);
    }
  }
}

}  // namespace stagecraft
