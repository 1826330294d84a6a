#include "kernels/gemm/unpack_words.h"

#include <algorithm>

#include "kernels/gemm/weight_rows.h"

namespace edgekit {
namespace {

class Unpacking {
 public:
  Unpacking(const OpArgs& args, const ConvQ8Source& source, const WordWeights& to)
      : attrs_(args.attrs<ConvQ8Attrs>()),
        args_(args),
        source_(source),
        to_(to),
        group_columns_(args.out(0).dims[3] / attrs_.groups) {}

  bool run() {
    const int64_t panels = attrs_.groups * packed_panels(), lanes = int64_t{attrs_.nr} * attrs_.kg;
    const auto* w = args_.in(1).as<const int8_t>();
    const WeightRows rows = weight_rows_of(args_, panels);
    if (rows.starts == nullptr) {
      const int64_t count = source_.depth_groups();
      for (int64_t row = 0; row < panels * count; ++row) add(row / count, row % count, kRowForm[0], w + row * lanes);
      return fits_;
    }
    const int32_t* order = rows.orders;
    for (int64_t segment = 0; segment < panels * rows.segments; ++segment) {
      const auto form = static_cast<int>(segment % rows.forms());
      for (int32_t row = rows.starts[segment]; row < rows.starts[segment + 1]; ++row) {
        add(segment / rows.segments, rows.groups[row], row_form(form, order), w + row * lanes);
      }
    }
    return fits_;
  }

 private:
  int64_t packed_panels() const { return (group_columns_ + attrs_.nr - 1) / attrs_.nr; }

  // One row of a packed panel, counted over all groups.
  void add(int64_t packed_panel, int64_t depth_group, RowForm form, const int8_t* row) {
    const ConvQ8Source& s = source_;
    const int64_t group = packed_panel / packed_panels(), first = packed_panel % packed_panels() * attrs_.nr;
    const int64_t end = std::min<int64_t>(first + attrs_.nr, group_columns_);
    const int64_t line = depth_group / s.run_groups, run = depth_group % s.run_groups * attrs_.kg;
    for (int j = 0; j < attrs_.kg; ++j) {
      const int64_t byte = run + (attrs_.kg == 4 ? form.order >> (8 * j) & 0xff : j);
      if (byte >= s.run_bytes) continue;  // behind the last tap
      const int64_t tap = line * attrs_.kernel_w + byte / s.channels;
      const int64_t word = tap * ((s.channels + 1) / 2 * 2) + byte % s.channels;
      const bool complemented = (form.complement >> (8 * j) & 0xff) != 0;
      for (int64_t column = first; column < end; column += kWordColumns) {
        const int64_t panel = group * to_.panels + column / kWordColumns;
        const Lanes to{to_.b + (panel * to_.depth_groups + word / 2) * kWordColumns * 2 + word % 2,
                       to_.bias + panel * kWordColumns, std::min<int64_t>(kWordColumns, end - column)};
        put(to, row + (column - first) * attrs_.kg + j, complemented);
      }
    }
  }

  // One word of the columns of a panel.
  struct Lanes {
    int16_t* words;  // two apart
    int32_t* bias;
    int64_t count;
  };

  // w * (255 - x) = 255 * w - w * x. The bias lacks the first part.
  void put(const Lanes& to, const int8_t* w, bool complemented) {
    for (int64_t lane = 0; lane < to.count; ++lane, w += attrs_.kg) {
      const int32_t sum = to.words[2 * lane] + (complemented ? -*w : *w);
      fits_ = fits_ && sum >= INT16_MIN && sum <= INT16_MAX;
      to.words[2 * lane] = static_cast<int16_t>(sum);
      if (complemented)
        to.bias[lane] = static_cast<int32_t>(static_cast<uint32_t>(to.bias[lane]) + static_cast<uint32_t>(255 * *w));
    }
  }

  const ConvQ8Attrs& attrs_;
  const OpArgs& args_;
  const ConvQ8Source& source_;
  const WordWeights& to_;
  const int64_t group_columns_;
  bool fits_ = true;
};

}  // namespace

bool unpack_words(const OpArgs& args, const ConvQ8Source& source, const WordWeights& to) {
  return Unpacking(args, source, to).run();
}

}  // namespace edgekit
