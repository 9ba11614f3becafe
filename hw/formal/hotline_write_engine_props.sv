// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_write_engine`, its marks left out: bursts are legal, contiguous, and stay as they are
/// while they wait; a burst has as many data beats as its address says, LAST on the last, and they
/// are not offered before the address; they are there when it is issued; bursts in flight are
/// bounded. All of it under any `cancel_i`.
///
/// Any one burst is followed from its issue to its last beat: `pick_i` chooses it.
module hotline_write_engine_props #(
  parameter int unsigned BurstBeats  = 2,
  parameter int unsigned Outstanding = 2,
  parameter int unsigned FifoBeats   = 3
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [1:0]       cmd_valid_i,
  input logic [1:0][63:0] cmd_addr_i,
  input logic [1:0]       in_valid_i,
  input logic [1:0][63:0] in_data_i,
  input logic [1:0][1:0]  in_words_i,
  input logic [1:0]       in_last_i,
  input logic             mark_valid_i,
  input logic             acked_ready_i,
  input logic             cancel_i,
  input logic             m_aw_ready_i,
  input logic             m_w_ready_i,
  input logic             m_b_valid_i,
  input logic [1:0]       m_b_resp_i,
  input logic [63:0]      m_b_addr_i,
  input logic             pick_i
);

  localparam int unsigned CommandDepth = 2;
  localparam int unsigned AheadDepth   = 8;
  localparam int unsigned BeatsWidth   = $clog2(BurstBeats + 1);
  localparam int unsigned BurstDepth   = FifoBeats / BurstBeats + 4;

  logic [1:0]  cmd_ready;
  logic [1:0]  in_ready;
  logic        mark_ready;
  logic        acked_valid;
  logic        acked_error;
  logic [63:0] acked_addr;
  logic        idle;
  logic        m_aw_valid;
  logic [63:0] m_aw_addr;
  logic [7:0]  m_aw_len;
  logic        m_w_valid;
  logic [63:0] m_w_data;
  logic [7:0]  m_w_strb;
  logic        m_w_last;
  logic        m_b_ready;

  hotline_write_engine #(
    .BusBits(64), .Channels(2), .BurstBeats(BurstBeats), .Outstanding(Outstanding),
    .FifoBeats(FifoBeats), .CommandDepth(CommandDepth)
  ) dut (
    .clk_i, .rst_ni,
    .cmd_valid_i, .cmd_ready_o(cmd_ready), .cmd_addr_i,
    .in_valid_i, .in_ready_o(in_ready), .in_data_i, .in_words_i, .in_last_i,
    .mark_valid_i, .mark_ready_o(mark_ready), .acked_valid_o(acked_valid), .acked_ready_i,
    .acked_error_o(acked_error), .acked_addr_o(acked_addr),
    .cancel_i, .idle_o(idle),
    .m_aw_valid_o(m_aw_valid), .m_aw_ready_i, .m_aw_addr_o(m_aw_addr), .m_aw_len_o(m_aw_len),
    .m_w_valid_o(m_w_valid), .m_w_ready_i, .m_w_data_o(m_w_data), .m_w_strb_o(m_w_strb),
    .m_w_last_o(m_w_last),
    .m_b_valid_i, .m_b_ready_o(m_b_ready), .m_b_resp_i, .m_b_addr_i
  );

  /// Whether a burst of `beats` from `addr` on may go on the bus.
  function automatic logic legal(input logic [63:0] addr, input logic [31:0] beats);
    return addr[2:0] == '0 && beats >= 1 && beats <= BurstBeats
           && 32'(addr[11:0]) + beats * 8 <= 4096;
  endfunction

  logic        started_q = 1'b0;
  logic        after_reset_q;
  logic        m_aw_held_q;
  logic        m_aw_free_q;
  logic [71:0] m_aw_q;
  logic        m_w_held_q;
  logic [72:0] m_w_q;
  logic        cancel_q;

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    after_reset_q <= !rst_ni;
    m_aw_held_q   <= rst_ni && m_aw_valid && !m_aw_ready_i;
    m_aw_free_q   <= !m_aw_valid || m_aw_ready_i;
    m_aw_q        <= {m_aw_addr, m_aw_len};
    m_w_held_q    <= rst_ni && m_w_valid && !m_w_ready_i;
    m_w_q         <= {m_w_data, m_w_strb, m_w_last};
    cancel_q      <= cancel_i;
  end

  // ------------------------------------------------------------- bursts, as the memory counts them

  logic       issue;
  logic       aw_out;
  logic       w_out;
  logic       w_ends;
  logic       b_in;
  logic [7:0] bursts_q;    // issued, data not through
  logic [7:0] given_q;     // addresses taken, not answered
  logic [7:0] through_q;   // bursts whose data are taken, not answered
  logic [7:0] beats_q;     // beats taken of the burst that W delivers
  logic       follow_q;
  logic [7:0] before_q;    // bursts whose data go first
  logic [8:0] wanted_q;    // its beats

  assign issue  = dut.issue;
  assign aw_out = m_aw_valid && m_aw_ready_i;
  assign w_out  = m_w_valid && m_w_ready_i;
  assign w_ends = w_out && m_w_last;
  assign b_in   = m_b_valid_i && m_b_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bursts_q  <= '0;
      given_q   <= '0;
      through_q <= '0;
      beats_q   <= '0;
      follow_q  <= 1'b0;
    end else begin
      bursts_q  <= bursts_q + 8'(issue) - 8'(w_ends);
      given_q   <= given_q + 8'(aw_out) - 8'(b_in);
      through_q <= through_q + 8'(w_ends) - 8'(b_in);
      if (w_out) beats_q <= m_w_last ? '0 : beats_q + 1'b1;
      if (follow_q && w_ends) begin
        follow_q <= before_q != '0;
        before_q <= before_q - 1'b1;
      end else if (!follow_q && issue && pick_i) begin
        follow_q <= 1'b1;
        before_q <= bursts_q - 8'(w_ends);
        wanted_q <= 9'(dut.burst_beats[dut.arbiter_index]);
      end
    end
  end

  // ------------------------------------------------------------------- the order of the data, named

  logic [7:0] reg_last;     // the last beat of a burst is offered on W
  logic [7:0] ahead_count;
  logic [7:0] flight_count;
  assign reg_last     = 8'(dut.w_valid_q && dut.w_last_q);
  assign ahead_count  = 8'(dut.u_ahead.count_q);
  assign flight_count = 8'(dut.u_flight.count_q);

  // [place in the order] what the FIFO holds
  logic [AheadDepth-1:0]      ahead_channel;
  logic [AheadDepth-1:0][7:0] ahead_beats;
  always_comb begin
    for (int unsigned i = 0; i < AheadDepth; i++) begin
      ahead_channel[i] = dut.u_ahead.gen_lut.u_ram.mem[
          3'(dut.u_ahead.read_q + 3'(i))][BeatsWidth];
      ahead_beats[i] = 8'(dut.u_ahead.gen_lut.u_ram.mem[
          3'(dut.u_ahead.read_q + 3'(i))][BeatsWidth-1:0]);
    end
  end

  logic ahead_legal;
  always_comb begin
    ahead_legal = 1'b1;
    for (int unsigned i = 0; i < AheadDepth; i++) begin
      if (8'(i) < ahead_count && (ahead_beats[i] == '0 || 32'(ahead_beats[i]) > BurstBeats)) begin
        ahead_legal = 1'b0;
      end
    end
  end

  logic [1:0] data_ok;
  logic [1:0] state_ok;
  logic [1:0] queue_ok;
  logic [1:0] quiet_ok;

  for (genvar c = 0; c < 2; c++) begin : gen_state
    logic [7:0]  owed;
    logic        bursts_legal;
    logic [31:0] queue_write;
    logic [31:0] burst_write;
    logic [31:0] data_write;
    logic [31:0] slot;
    assign queue_write = 32'(dut.gen_channel[c].u_commands.read_q)
                         + 32'(dut.gen_channel[c].u_commands.count_q);
    assign burst_write = 32'(dut.gen_channel[c].u_bursts.read_q)
                         + 32'(dut.gen_channel[c].u_bursts.count_q);
    assign data_write  = 32'(dut.gen_channel[c].u_data.read_q)
                         + 32'(dut.gen_channel[c].u_data.count_q);
    always_comb begin
      owed = dut.gen_channel[c].stream_q ? 8'(dut.gen_channel[c].beats_q) : '0;
      bursts_legal = 1'b1;
      slot = '0;
      for (int unsigned i = 0; i < AheadDepth; i++) begin
        if (8'(i) < ahead_count && ahead_channel[i] == 1'(c)) begin
          owed = owed + ahead_beats[i] - (i == 0 ? 8'(dut.w_beat_q) : '0);
        end
      end
      for (int unsigned i = 0; i < BurstDepth; i++) begin
        slot = 32'(dut.gen_channel[c].u_bursts.read_q) + i;
        if (slot >= BurstDepth) slot = slot - BurstDepth;
        if (i < 32'(dut.gen_channel[c].u_bursts.count_q)) begin
          owed = owed + 8'(dut.gen_channel[c].u_bursts.gen_lut.u_ram.mem[slot][
                               64+:BeatsWidth]);
          if (!legal(dut.gen_channel[c].u_bursts.gen_lut.u_ram.mem[slot][63:0],
                     32'(dut.gen_channel[c].u_bursts.gen_lut.u_ram.mem[slot][
                         64+:BeatsWidth]))) begin
            bursts_legal = 1'b0;
          end
        end
      end
    end

    // Every beat of a burst that is not on W is in the FIFO.
    assign data_ok[c] = dut.drain_q || 8'(dut.gen_channel[c].u_data.count_q) == owed;
    // Nothing is left of what was cancelled.
    assign quiet_ok[c] = !dut.drain_q || (dut.gen_channel[c].u_data.count_q == '0
        && dut.gen_channel[c].u_bursts.count_q == '0 && !dut.gen_channel[c].stream_q
        && dut.gen_channel[c].u_commands.count_q == '0);
    assign queue_ok[c] = 32'(dut.gen_channel[c].u_commands.count_q) <= CommandDepth
        && 32'(dut.gen_channel[c].u_commands.write_q) == queue_write % CommandDepth
        && (!dut.gen_channel[c].u_commands.ready_q
            || 32'(dut.gen_channel[c].u_commands.count_q) != CommandDepth)
        && (dut.gen_channel[c].u_commands.count_q < 2
            || (dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[0][2:0] == '0
                && dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[1][2:0] == '0))
        && (dut.gen_channel[c].u_commands.count_q == '0
            || dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[
                   dut.gen_channel[c].u_commands.read_q][2:0] == '0);
    assign state_ok[c] = bursts_legal
        && 32'(dut.gen_channel[c].u_bursts.count_q) <= BurstDepth
        && 32'(dut.gen_channel[c].u_bursts.read_q) < BurstDepth
        && 32'(dut.gen_channel[c].u_bursts.write_q) ==
               (burst_write >= BurstDepth ? burst_write - BurstDepth : burst_write)
        && (!dut.gen_channel[c].u_bursts.ready_q
            || 32'(dut.gen_channel[c].u_bursts.count_q) != BurstDepth)
        && 32'(dut.gen_channel[c].u_data.count_q) <= FifoBeats
        && 32'(dut.gen_channel[c].u_data.read_q) < FifoBeats
        && 32'(dut.gen_channel[c].u_data.write_q) ==
               (data_write >= FifoBeats ? data_write - FifoBeats : data_write)
        && (!dut.gen_channel[c].u_data.ready_q
            || 32'(dut.gen_channel[c].u_data.count_q) != FifoBeats)
        // The open burst: shorter than the longest, within its page, its end where the next beat goes.
        && (!dut.gen_channel[c].stream_q
            || (dut.gen_channel[c].start_q[2:0] == '0
                && 32'(dut.gen_channel[c].beats_q) < BurstBeats
                && 32'(dut.gen_channel[c].start_q[11:3]) + 32'(dut.gen_channel[c].beats_q)
                   == 32'(dut.gen_channel[c].page_q)));
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      if (cmd_valid_i[c]) assume (cmd_addr_i[c][2:0] == '0);
      if (in_valid_i[c] && in_last_i[c]) assume (in_words_i[c] <= 2);
    end
    if (m_b_valid_i) assume (given_q != '0 && through_q != '0);
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      if (m_aw_valid) a_aw_legal: assert (legal(m_aw_addr, 32'(m_aw_len) + 1));
      if (m_aw_held_q) a_aw_stable: assert (m_aw_valid && {m_aw_addr, m_aw_len} == m_aw_q);
      if (m_w_held_q) a_w_stable: assert (m_w_valid && {m_w_data, m_w_strb, m_w_last} == m_w_q);
      if (cancel_q && m_aw_free_q) a_cancel: assert (!m_aw_valid);
      a_outstanding: assert (32'(flight_count) <= Outstanding);
      if (follow_q && before_q == '0 && m_w_valid) begin
        a_w_length: assert (m_w_last == (9'(beats_q) + 9'd1 == wanted_q));
      end
      // Bursts whose data are through, or on offer, never outnumber the addresses offered.
      if (m_w_valid) a_w_behind: assert (through_q < given_q + 8'(m_aw_valid));
      if (ahead_count != '0 && !dut.dead) a_data_there: assert (dut.data_valid[dut.ahead_channel]);
      if (m_w_valid) a_strobes: assert (m_w_strb == 8'h00 || m_w_strb == 8'h0f || m_w_strb == 8'hff);
      if (!after_reset_q) a_b_ready: assert (m_b_ready);

      // What makes them inductive.
      i_data:  assert (&data_ok);
      i_drain: assert (&quiet_ok);
      i_state: assert (&state_ok);
      i_queue: assert (&queue_ok);
      i_ahead: assert (32'(ahead_count) <= AheadDepth && ahead_legal
                       && 3'(dut.u_ahead.write_q) == 3'(dut.u_ahead.read_q + 3'(ahead_count))
                       && (!dut.u_ahead.ready_q || 32'(ahead_count) != AheadDepth));
      i_flight: assert (32'(dut.u_flight.read_q) < Outstanding
                        && (!dut.u_flight.ready_q || 32'(flight_count) != Outstanding));
      i_bursts: assert (32'(bursts_q) == ahead_count + reg_last);
      i_given:  assert (32'(given_q) + 8'(m_aw_valid) + 8'(dut.b_valid_q) == flight_count);
      i_through: assert (32'(through_q) + bursts_q + 8'(dut.b_valid_q) == flight_count);
      if (dut.w_valid_q && !dut.w_last_q) begin
        i_w_inside: assert (8'(dut.w_beat_q) == beats_q + 1'b1 && ahead_count != '0
                            && 8'(dut.w_beat_q) < ahead_beats[0]);
      end else if (dut.w_valid_q) begin
        i_w_ends: assert (dut.w_beat_q == '0);
      end else begin
        i_w_none: assert (8'(dut.w_beat_q) == beats_q && (beats_q == '0 ||
                          (ahead_count != '0 && 8'(dut.w_beat_q) < ahead_beats[0])));
      end
      if (follow_q) begin
        i_follow: assert (before_q < bursts_q && (before_q < reg_last
            ? wanted_q == 9'(beats_q) + 9'd1
            : wanted_q == 9'(ahead_beats[3'(before_q - reg_last)])));
      end

      c_full:   cover (32'(flight_count) == Outstanding && ahead_count == 2);
      c_page:   cover (m_aw_valid && m_aw_addr[11:3] == '1 && dut.gen_channel[0].page_q == '0
                       && dut.gen_channel[0].stream_q);
      c_follow: cover (follow_q && before_q == '0 && w_ends);
      c_long:   cover (w_ends && 32'(beats_q) + 1 == BurstBeats);
      c_drain:  cover (dut.drain_q && m_w_valid && m_w_strb == '0);
      c_early:  cover (m_w_valid && m_aw_valid && given_q == '0);
    end
  end

endmodule
