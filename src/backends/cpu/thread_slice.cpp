#include "backends/cpu/thread_slice.h"

namespace stagecraft {

Rows ThreadSlice::prepare(MatrixView<const float> x, const PackedNorm& norm, ActivationTypes types,
                          std::span<const std::uint32_t> order) const {
  const std::size_t width = x.cols();
  const std::size_t n = order.empty() ? x.rows() : order.size();
  const bool together = n > kFewRows && n_threads_ > 1;
  PreparedRows& p = together ? w_.prepared : scratch_.prepared;
  const Range mine = together ? of(n) : Range{0, n};
  const MatrixView<float> f32(p.f32.data(), n, width, f32_stride(width));
  const bool keeps_f32 = has(types, ActivationType::F32);
  if (!norm && order.empty() && !is_rounded(types)) return {&p, x};
  for (std::size_t r = mine.begin; r < mine.end; ++r) {
    const float* row = x.row(order.empty() ? r : order[r]).data();
    if (norm) {
      // If only rounded rows are needed, all normed rows use one row of memory, which stays in the
      // cache.
      float* const normed = f32.row(keeps_f32 ? r : mine.begin).data();
      norm.apply(k_, row, normed);
      row = normed;
    } else if (!order.empty() && keeps_f32) {
      std::copy_n(row, width, f32.row(r).data());
    }
    for (const ActivationType type : kRoundedTypes) {
      if (has(types, type)) round_row(row, type, r, width, p);
    }
  }
  if (together) barrier();
  return {&p, norm || !order.empty() ? MatrixView<const float>(f32) : x};
}

void ThreadSlice::round_part(const float* x, ActivationType type, std::size_t r, Range columns,
                             std::size_t width, RoundedRows& p) const {
  switch (type) {
    case ActivationType::F32:
      return;
    case ActivationType::BF16:
      return k_.to_bf16(x, columns.size(), &p.bf16.data()[r * bf16_stride(width) + columns.begin]);
    case ActivationType::Q8: {
      const std::size_t block = r * (width / kQuantBlock) + columns.begin / kQuantBlock;
      return k_.to_q8(x, columns.size(), &p.q8.data()[r * q8_stride(width) + columns.begin],
                      &p.scales.data()[block], &p.sums.data()[block]);
    }
    case ActivationType::Q8_K:
      return k_.to_q8_k(x, columns.size(),
                        &p.q8_k.data()[r * q8_k_stride(width) + columns.begin / Q8KBlock::kSize]);
  }
}

// With fewer than kEnough rows at a time, reading all weights again and again would take longer
// than reading rows from beyond L2.
std::size_t ThreadSlice::rows_together(const PanelMatrix& m) const {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kEnough = 96;
  const ActivationType type = activation_type(m);
  return std::max(kEnough, kBytes / (row_stride(type, m.inputs) * bytes_of(type)));
}

void ThreadSlice::multiply(const Rows& x, Range rows, std::span<const Product> products) const {
  std::size_t panels = 0;
  for (const Product& one : products) panels += one.weight->panel_count();
  const std::size_t together = rows_together(*products.front().weight);
  slice_tiles(panels, rows, together, [&](Range mine, Range some) {
    std::size_t first = 0;  // first panel of this product
    for (const Product& one : products) {
      const std::size_t end = first + one.weight->panel_count();
      const Range of_this{std::max(mine.begin, first), std::min(mine.end, end)};
      if (of_this.begin < of_this.end) {
        multiply_panels(x, one, {of_this.begin - first, of_this.end - first}, some);
      }
      first = end;
    }
  });
}

void ThreadSlice::multiply_panels(const Rows& x, const Product& product, Range panels,
                                  Range rows) const {
  const auto& [weight, bias, out, add, activate] = product;
  const PanelMatrix& m = *weight;
  const std::size_t most = max_rows(m);
  // The outputs of whole panels are written directly to their place. If all rows are one tile, it
  // is multiplied with panel after panel; else all rows are multiplied with one panel before the
  // next.
  const std::size_t whole = bias == nullptr && activate == nullptr ? m.outputs / kPanelOutputs : 0;
  while (panels.begin < std::min(panels.end, whole)) {
    const std::size_t end = rows.size() <= most ? std::min(panels.end, whole) : panels.begin + 1;
    for (std::size_t r = rows.begin; r < rows.end; r += most) {
      tiles(m, {panels.begin, end}, x, r, std::min(most, rows.end - r),
            {&out(r, panels.begin * kPanelOutputs), out.stride(), add}, rows);
    }
    panels.begin = end;
  }
  for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
    multiply_panel(x, product, panel, rows);
  }
}

void ThreadSlice::multiply_panel(const Rows& x, const Product& product, std::size_t panel,
                                 Range rows) const {
  const auto& [weight, bias, out, add, activate] = product;
  const PanelMatrix& m = *weight;
  const std::size_t output = panel * kPanelOutputs;
  const std::size_t n_outputs = std::min(kPanelOutputs, m.outputs - output);
  for (std::size_t r = rows.begin; r < rows.end; r += max_rows(m)) {
    const std::size_t n = std::min(max_rows(m), rows.end - r);
    float* values = scratch_.tile.data();
    tile(m, panel, x, r, n, {values}, rows);
    for (std::size_t i = 0; i < n; ++i, values += kPanelOutputs) {
      if (bias != nullptr) k_.add(bias + output, n_outputs, values);
      if (activate != nullptr) activate(values, nullptr, n_outputs, values);
      float* to = &out(r + i, output);
      if (add) {
        k_.add(values, n_outputs, to);
      } else {
        std::copy_n(values, n_outputs, to);
      }
    }
  }
}

TileArgs ThreadSlice::tile_args(const PanelMatrix& m, const Rows& x, std::size_t first,
                                const TileOut& out) const {
  const ActivationType type = activation_type(m);
  TileArgs args{.inputs = m.inputs,
                .row_stride = row_stride(type, m.inputs),
                .out = out.data,
                .out_stride = out.stride,
                .add = out.add};
  switch (type) {
    case ActivationType::F32:
      args.rows = x.f32.row(first).data();
      args.row_stride = x.f32.stride();
      break;
    case ActivationType::BF16:
      args.rows = &x.prepared->bf16.data()[first * args.row_stride];
      break;
    case ActivationType::Q8:
      args.rows = &x.prepared->q8.data()[first * args.row_stride];
      args.block_stride = m.inputs / kQuantBlock;
      args.scales = &x.prepared->scales.data()[first * args.block_stride];
      args.sums = &x.prepared->sums.data()[first * args.block_stride];
      break;
    case ActivationType::Q8_K:
      args.rows = &x.prepared->q8_k.data()[first * args.row_stride];
      break;
  }
  return args;
}

void ThreadSlice::tiles(const PanelMatrix& m, Range panels, const Rows& x, std::size_t first,
                        std::size_t n, const TileOut& out, Range all, const std::byte* next) const {
  TileArgs args = tile_args(m, x, first, out);
  if (next == nullptr && two_at_a_time(n, all)) {
    const std::size_t half = panels.size() / 2;
    for (std::size_t i = 0; i < half; ++i, args.out += kPanelOutputs) {
      multiply_two(args, m, panels.begin + i, m, panels.begin + half + i,
                   args.out + half * kPanelOutputs);
    }
    panels.begin += 2 * half;
    args.out += half * kPanelOutputs;
  }
  const Tile kernel = k_.matmul(m.layout).tile;
  for (std::size_t panel = panels.begin; panel < panels.end; ++panel, args.out += kPanelOutputs) {
    args.panel = m.panel(panel);
    if (next != nullptr) {
      fetch_next(args, m, next);
    } else {
      fetch_on_the_way(args, m, panel, first - all.begin, n, all.size());
    }
    kernel(args, n);
  }
}

void ThreadSlice::multiply_two(TileArgs args, const PanelMatrix& m, std::size_t panel,
                               const PanelMatrix& second, std::size_t second_panel,
                               float* second_out) const {
  args.panel = m.panel(panel);
  args.prefetch = m.prefetch;
  args.second = second.panel(second_panel) - args.panel;
  args.second_out = second_out - args.out;
  k_.matmul(m.layout).tile(args, 1);
}

void ThreadSlice::tile_of_each(const PanelMatrix& a, const PanelMatrix& b, std::size_t panel,
                               const Rows& x, std::size_t first, std::size_t n, float* out_a,
                               float* out_b, Range all) const {
  if (a.layout == b.layout && two_at_a_time(n, all)) {
    return multiply_two(tile_args(a, x, first, {out_a}), a, panel, b, panel, out_b);
  }
  tile(a, panel, x, first, n, {out_a}, all);
  tile(b, panel, x, first, n, {out_b}, all);
}

}  // namespace stagecraft
