#include "kernels/gemm/conv_q8_rows.h"

#include <algorithm>

namespace edgekit {
namespace {

// Pixels [at.ox, end) of a line; those in `inner` are direct where their reads stay below x's end. False: no room for
// all of them.
bool provide_line(const ConvQ8Images& images, OutputCursor at, int64_t end, int64_t group, ConvQ8Rows& to) {
  const ConvQ8Source& s = images.source;
  const bool inner_line = at.oy >= images.inner_rows.begin && at.oy < images.inner_rows.end;
  const Span inner = inner_line ? images.inner_columns : Span{0, 0};
  LineWalk walk(images, group, at);
  while (at.ox < end) {
    if (at.ox >= inner.begin && at.ox < inner.end) {
      const int64_t count = walk.readable(std::min(end, inner.end) - at.ox, s.end, images.reach);
      walk.put_direct(to.at, to.direct_count, count);
      to.direct_count += count;
      at.ox += count;
      if (count > 0) continue;
    }
    if (to.packed_count == to.most_packed) return false;
    uint8_t* packed = to.packed + to.packed_count * s.row_bytes();
    pack_window(s, group, at, packed);
    walk.put_packed(to.at, to.most - ++to.packed_count, packed);
    ++at.ox;
  }
  return true;
}

}  // namespace

int64_t provide_rows(const ConvQ8Images& images, Span rows, int64_t group, ConvQ8Rows& to) {
  const ConvQ8Source& s = images.source;
  to.direct_count = to.packed_count = 0;
  OutputCursor at(s, rows.begin);
  for (int64_t left = std::min(rows.end - rows.begin, to.most); left > 0;) {
    const int64_t end = std::min<int64_t>(s.out_w, at.ox + left);
    if (!provide_line(images, at, end, group, to)) break;
    left -= end - at.ox;
    at.next_line(s);
  }
  return to.direct_count + to.packed_count;
}

}  // namespace edgekit
