// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Packs groups of 32-bit words into full beats for `hotline_write_engine`.
///
/// A group (`in_*`) holds `in_count_i` = 0 ... InWords words, compacted from word 0 up; `last`
/// marks the final group of a stream (which may be empty). Beats (`out_*`) hold `Lanes` words, lane
/// 0 first; only the one with `last` may hold fewer, `words` says how many. A stream whose words
/// just filled its beats when an empty last group comes ends with a beat of 0 words. Lanes beyond
/// `words` are undefined.
///
///   Lanes = 4, InWords = 3
///   in_*  : a b c | d e | f g h last |
///   out_* :             | d c b a    | h g f e last       (lane 3 ... lane 0)
///
/// Throughput  1 group per cycle, 1 beat per cycle.
/// Latency     1 cycle from the group that completes a beat, or is the last, to the beat.
/// Stalls      `in_ready_o` falls while the output holds two untaken beats, and for one cycle
///             behind a last group that overflows its beat (the rest is a beat of its own).
/// Errors      None. Counts above InWords are forbidden (asserted).
/// Reset       Drops the words held; `flush_i` does the same in one cycle and also drops a group
///             that is accepted in that cycle; `out_valid_o` may fall then without a transfer.
module hotline_word_packer #(
  /// Words of a beat.
  parameter int unsigned Lanes = 16,
  /// Words of a group, 1 ... Lanes.
  parameter int unsigned InWords = 1,
  localparam int unsigned CountWidth = $clog2(InWords + 1),
  localparam int unsigned WordsWidth = $clog2(Lanes + 1)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// Synchronous clear.
  input  logic                     flush_i,

  input  logic                     in_valid_i,
  output logic                     in_ready_o,
  input  logic [CountWidth-1:0]    in_count_i,
  input  logic [InWords-1:0][31:0] in_data_i,
  input  logic                     in_last_i,

  output logic                     out_valid_o,
  input  logic                     out_ready_i,
  output logic [Lanes-1:0][31:0]   out_data_o,
  output logic [WordsWidth-1:0]    out_words_o,
  output logic                     out_last_o
);

  if (Lanes < 1 || InWords < 1 || InWords > Lanes) begin : gen_bad_words
    $fatal(1, "%m: InWords must be 1 ... Lanes");
  end

  localparam int unsigned TotalWidth = $clog2(2 * Lanes + 1);

  // Words held, fewer than a beat; `rest_q`: they end their stream.
  logic [Lanes-1:0][31:0]           hold_q;
  logic [WordsWidth-1:0]            fill_q;
  logic                             rest_q;

  // The held words with the group behind them; `total` of them are valid.
  logic [Lanes+InWords-1:0][31:0]   merged;
  logic [TotalWidth-1:0]            total;
  logic                             full;

  logic                             transfer;
  logic                             push;
  logic                             push_last;
  logic [WordsWidth-1:0]            push_words;
  logic                             spill_ready;

  assign in_ready_o = spill_ready && !rest_q;
  assign transfer   = in_valid_i && in_ready_o;
  assign total      = TotalWidth'(fill_q) + (rest_q ? '0 : TotalWidth'(in_count_i));
  assign full       = total >= TotalWidth'(Lanes);

  always_comb begin
    merged = '0;
    merged[Lanes-1:0] = hold_q;
    for (int unsigned fill = 0; fill < Lanes; fill++) begin
      if (WordsWidth'(fill) == fill_q && !rest_q) begin
        merged[fill+:InWords] = in_data_i;
      end
    end
  end

  // A last group ends the stream in this beat unless words remain for another.
  assign push_last  = rest_q || (in_last_i && total <= TotalWidth'(Lanes));
  assign push_words = full ? WordsWidth'(Lanes) : WordsWidth'(total);
  assign push       = spill_ready && (rest_q || (in_valid_i && (full || in_last_i)));

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      fill_q <= '0;
      rest_q <= 1'b0;
    end else if (push) begin
      fill_q <= full ? WordsWidth'(total - TotalWidth'(Lanes)) : '0;
      rest_q <= !rest_q && in_last_i && total > TotalWidth'(Lanes);
    end else if (transfer) begin
      fill_q <= WordsWidth'(total);
    end
  end

  // Not reset: qualified by fill_q.
  always_ff @(posedge clk_i) begin
    if (push) begin
      hold_q[InWords-1:0] <= merged[Lanes+:InWords];
    end else if (transfer) begin
      hold_q <= merged[Lanes-1:0];
    end
  end

  hotline_spill_register #(
    .Width(1 + WordsWidth + Lanes * 32)
  ) u_spill (
    .clk_i,
    .rst_ni     (rst_ni && !flush_i),
    .in_valid_i (push),
    .in_ready_o (spill_ready),
    .in_data_i  ({push_last, push_words, merged[Lanes-1:0]}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_last_o, out_words_o, out_data_o})
  );

`ifndef SYNTHESIS
  a_in_stable : assert property (@(posedge clk_i) disable iff (!rst_ni || flush_i)
      in_valid_i && !in_ready_o
      |=> in_valid_i && $stable(in_count_i) && $stable(in_data_i) && $stable(in_last_i));
  a_in_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_valid_i |-> 32'(in_count_i) <= InWords);
  a_out_stable : assert property (@(posedge clk_i) disable iff (!rst_ni || flush_i)
      out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o)
      && $stable(out_words_o) && $stable(out_last_o));
  a_out_full : assert property (@(posedge clk_i) disable iff (!rst_ni)
      out_valid_o && !out_last_o |-> 32'(out_words_o) == Lanes);
  c_rest : cover property (@(posedge clk_i) disable iff (!rst_ni) rest_q && push);
`endif

endmodule
