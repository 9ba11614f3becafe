// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_word_packer`: words keep their order, none is lost or doubled, and a beat holds
/// words of one stream only, the last beat of a stream being marked.
///
/// Any one word is followed: `pick_i`, `pick_word_i` choose it. Streams are told apart by a bit that
/// changes with each accepted or delivered `last`.
module hotline_word_packer_props #(
  parameter int unsigned Lanes   = 4,
  parameter int unsigned InWords = 2,
  localparam int unsigned CountWidth = $clog2(InWords + 1),
  localparam int unsigned WordsWidth = $clog2(Lanes + 1)
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic                     flush_i,
  input logic                     in_valid_i,
  input logic [CountWidth-1:0]    in_count_i,
  input logic [InWords-1:0][31:0] in_data_i,
  input logic                     in_last_i,
  input logic                     out_ready_i,
  input logic                     pick_i,
  input logic [CountWidth-1:0]    pick_word_i
);

  logic                   in_ready;
  logic                   out_valid;
  logic [Lanes-1:0][31:0] out_data;
  logic [WordsWidth-1:0]  out_words;
  logic                   out_last;

  hotline_word_packer #(
    .Lanes(Lanes), .InWords(InWords)
  ) dut (
    .clk_i, .rst_ni, .flush_i,
    .in_valid_i, .in_ready_o(in_ready), .in_count_i, .in_data_i, .in_last_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .out_words_o(out_words),
    .out_last_o(out_last)
  );

  logic        started_q = 1'b0;
  logic        in_transfer;
  logic        out_transfer;
  logic        stream_in_q;
  logic        stream_out_q;
  logic [31:0] count_q;   // words accepted and not delivered
  logic        follow_q;
  logic [31:0] value_q;
  logic [31:0] before_q;  // words to be delivered before the chosen one
  logic        stream_q;  // its stream

  assign in_transfer  = in_valid_i && in_ready;
  assign out_transfer = out_valid && out_ready_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni || flush_i) begin
      stream_in_q  <= 1'b0;
      stream_out_q <= 1'b0;
      count_q      <= '0;
      follow_q     <= 1'b0;
    end else begin
      stream_in_q  <= stream_in_q ^ (in_transfer && in_last_i);
      stream_out_q <= stream_out_q ^ (out_transfer && out_last);
      count_q      <= count_q + (in_transfer ? 32'(in_count_i) : 0)
                      - (out_transfer ? 32'(out_words) : 0);
      if (follow_q && out_transfer) begin
        follow_q <= before_q >= 32'(out_words);
        before_q <= before_q - 32'(out_words);
      end else if (!follow_q && in_transfer && pick_i) begin
        follow_q <= 1'b1;
        value_q  <= in_data_i[pick_word_i];
        before_q <= count_q + 32'(pick_word_i) - (out_transfer ? 32'(out_words) : 0);
        stream_q <= stream_in_q;
      end
    end
  end

  // The pipeline: output beat, skid beat, words held.
  logic                   skid_valid;
  logic                   skid_last;
  logic [WordsWidth-1:0]  skid_words;
  logic [Lanes-1:0][31:0] skid_data;
  assign skid_valid = dut.u_spill.skid_valid_q;
  assign {skid_last, skid_words, skid_data} = dut.u_spill.skid_q;

  logic [31:0] in_out;
  logic [31:0] in_skid;
  logic        last_out;
  logic        last_skid;
  assign in_out    = out_valid ? 32'(out_words) : 0;
  assign in_skid   = skid_valid ? 32'(skid_words) : 0;
  assign last_out  = out_valid && out_last;
  assign last_skid = skid_valid && skid_last;

  always_ff @(posedge clk_i) begin
    assume (32'(in_count_i) <= InWords);
    if (pick_i) assume (pick_word_i < in_count_i);
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      if (out_valid) begin
        a_words: assert (32'(out_words) <= Lanes);
        if (!out_last) a_full: assert (32'(out_words) == Lanes);
        if (follow_q && before_q < 32'(out_words)) begin
          a_word:   assert (out_data[before_q] == value_q);
          a_stream: assert (stream_q == stream_out_q);
        end
      end
      if (follow_q) a_not_lost: assert (before_q < count_q);

      // What makes them inductive.
      i_fill:   assert (32'(dut.fill_q) < Lanes);
      i_count:  assert (count_q == in_out + in_skid + 32'(dut.fill_q));
      i_skid:   assert (!skid_valid || out_valid);
      i_ready:  assert (!dut.u_spill.ready_q || !skid_valid);
      if (skid_valid) begin
        i_skid_words: assert (32'(skid_words) <= Lanes);
        if (!skid_last) i_skid_full: assert (32'(skid_words) == Lanes);
      end
      if (dut.rest_q) i_rest: assert (dut.fill_q != '0 && 32'(dut.fill_q) <= InWords);
      i_stream: assert (stream_in_q == (stream_out_q ^ last_out ^ last_skid ^ dut.rest_q));
      if (follow_q && before_q >= in_out) begin
        if (before_q < in_out + in_skid) begin
          i_in_skid: assert (skid_data[before_q - in_out] == value_q &&
                             stream_q == (stream_out_q ^ last_out));
        end else begin
          i_in_hold: assert (dut.hold_q[before_q - in_out - in_skid] == value_q &&
                             stream_q == (stream_out_q ^ last_out ^ last_skid));
        end
      end

      // One word never overflows a beat.
      c_rest:  cover (InWords == 1 || (dut.rest_q && out_valid));
      c_empty: cover (out_valid && out_last && out_words == '0);
      c_word:  cover (follow_q && out_transfer && before_q == 32'(Lanes) - 1);
      c_skid:  cover (follow_q && skid_valid && before_q > in_out);
    end
  end

endmodule
