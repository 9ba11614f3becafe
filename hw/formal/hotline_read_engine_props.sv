// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_read_engine`: bursts are legal, stay as they are while they wait, and are in flight in
/// bounded number; a beat always finds room; and the bursts of a command ask for its words, all of
/// them, once, in order.
///
/// With `Quiet` nothing is cancelled or flushed, and any one command of channel 0 is followed from its
/// acceptance (`pick_i`) to its last burst. Without, `cancel_i` and `flush_i` are free.
///
/// The memory is any that answers bursts in order with the right number of beats.
module hotline_read_engine_props #(
  parameter bit          Quiet       = 1'b0,
  parameter int unsigned BurstBeats  = 4,
  parameter int unsigned Outstanding = 2,
  parameter int unsigned FifoBeats   = 6
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [1:0]       cmd_valid_i,
  input logic [1:0][63:0] cmd_addr_i,
  input logic [1:0][31:0] cmd_beats_i,
  input logic [1:0]       out_ready_i,
  input logic [1:0]       cancel_i,
  input logic             flush_i,
  input logic             m_ar_ready_i,
  input logic             m_r_valid_i,
  input logic [63:0]      m_r_data_i,
  input logic [1:0]       m_r_resp_i,
  input logic             m_r_last_i,
  input logic [63:0]      m_r_addr_i,
  input logic             pick_i
);

  localparam int unsigned CommandDepth = 2;

  logic [1:0]       cmd_ready;
  logic [1:0]       out_valid;
  logic [1:0][63:0] out_data;
  logic [1:0]       out_error;
  logic [1:0][63:0] out_addr;
  logic [1:0]       out_last;
  logic [1:0]       out_void;
  logic             idle;
  logic             m_ar_valid;
  logic [63:0]      m_ar_addr;
  logic [7:0]       m_ar_len;
  logic             m_r_ready;

  hotline_read_engine #(
    .BusBits(64), .Channels(2), .BurstBeats(BurstBeats), .Outstanding(Outstanding),
    .FifoBeats(FifoBeats), .CommandDepth(CommandDepth)
  ) dut (
    .clk_i, .rst_ni,
    .cmd_valid_i, .cmd_ready_o(cmd_ready), .cmd_addr_i, .cmd_beats_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .out_error_o(out_error),
    .out_addr_o(out_addr), .out_last_o(out_last), .out_void_o(out_void),
    .cancel_i, .flush_i, .idle_o(idle),
    .m_ar_valid_o(m_ar_valid), .m_ar_ready_i, .m_ar_addr_o(m_ar_addr), .m_ar_len_o(m_ar_len),
    .m_r_valid_i, .m_r_ready_o(m_r_ready), .m_r_data_i, .m_r_resp_i, .m_r_last_i, .m_r_addr_i
  );

  /// Whether a burst of `beats` from `addr` on may go on the bus.
  function automatic logic legal(input logic [63:0] addr, input logic [31:0] beats);
    return addr[2:0] == '0 && beats >= 1 && beats <= BurstBeats
           && 32'(addr[11:0]) + beats * 8 <= 4096;
  endfunction

  logic started_q = 1'b0;
  logic after_reset_q;
  logic m_ar_held_q;
  logic m_ar_free_q;
  logic [71:0] m_ar_q;
  logic flushed_q;

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    after_reset_q <= !rst_ni;
    m_ar_held_q   <= rst_ni && m_ar_valid && !m_ar_ready_i;
    m_ar_free_q   <= !m_ar_valid || m_ar_ready_i;
    m_ar_q        <= {m_ar_addr, m_ar_len};
    flushed_q     <= flush_i;
  end

  // ------------------------------------------------------------- bursts in flight, as the memory knows

  logic        issue;
  logic        issue_channel;
  logic [7:0]  issue_beats;
  logic        ar_out;
  logic        r_in;
  logic        pop;
  assign issue         = dut.issue;
  assign issue_channel = dut.arbiter_index;
  assign issue_beats   = 8'(dut.burst_beats[dut.arbiter_index]);
  assign ar_out        = m_ar_valid && m_ar_ready_i;
  assign r_in          = m_r_valid_i && m_r_ready;
  assign pop           = dut.order_pop;

  logic [1:0]      count_q;          // bursts issued whose last beat is not in a FIFO
  logic [1:0]      channel_q;        // [burst], the oldest first
  logic [1:0][7:0] beats_q;          // [burst]
  logic [7:0]      left_q;           // beats of the oldest that are not in a FIFO
  logic [7:0]      got_q;            // beats taken of the burst that R delivers

  // R delivers the oldest burst, or the next one while the oldest's last beat is on its way.
  logic       r_next;
  logic [1:0] sent;
  logic [7:0] r_beats;
  assign r_next  = dut.r_valid_q && dut.r_last_q;
  assign sent    = count_q - 2'(m_ar_valid);
  assign r_beats = r_next ? beats_q[1] : beats_q[0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      left_q  <= '0;
      got_q   <= '0;
    end else begin
      count_q <= count_q + 2'(issue) - 2'(pop);
      if (r_in) got_q <= m_r_last_i ? '0 : got_q + 1'b1;
      if (pop) begin
        channel_q[0] <= channel_q[1];
        beats_q[0]   <= beats_q[1];
      end
      if (issue) begin
        channel_q[1'(count_q - 2'(pop))] <= issue_channel;
        beats_q[1'(count_q - 2'(pop))]   <= issue_beats;
      end
      if (pop) begin
        left_q <= count_q > 1 ? beats_q[1] : (issue ? issue_beats : '0);
      end else if (count_q == '0) begin
        left_q <= issue ? issue_beats : '0;
      end else begin
        left_q <= left_q - 8'(dut.r_valid_q);
      end
    end
  end

  logic [1:0][7:0] awaited;
  always_comb begin
    for (int unsigned c = 0; c < 2; c++) begin
      awaited[c] = (count_q != '0 && channel_q[0] == 1'(c) ? left_q : '0)
                   + (count_q > 1 && channel_q[1] == 1'(c) ? beats_q[1] : '0);
    end
  end

  logic [31:0] order_write;
  assign order_write = 32'(dut.u_order.read_q) + 32'(count_q);

  // ---------------------------------------------------------------- the state of a channel, named

  logic [1:0]             free_ok;
  logic [1:0]             room;
  logic [1:0]             state_ok;
  logic [1:0]             queue_ok;

  for (genvar c = 0; c < 2; c++) begin : gen_state
    logic [31:0] queue_write;
    logic [31:0] data_write;
    logic        first;
    logic        second;
    assign queue_write = 32'(dut.gen_channel[c].u_commands.read_q)
                         + 32'(dut.gen_channel[c].u_commands.count_q);
    assign data_write  = 32'(dut.gen_channel[c].u_data.read_q)
                         + 32'(dut.gen_channel[c].u_data.count_q);
    // A command is aligned and not empty.
    assign first  = dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[0][31:0] != '0
                    && dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[0][34:32] == '0;
    assign second = dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[1][31:0] != '0
                    && dut.gen_channel[c].u_commands.gen_lut.u_ram.mem[1][34:32] == '0;
    assign queue_ok[c] = 32'(dut.gen_channel[c].u_commands.count_q) <= CommandDepth
        && 32'(dut.gen_channel[c].u_commands.write_q) == queue_write % CommandDepth
        && (!dut.gen_channel[c].u_commands.ready_q
            || 32'(dut.gen_channel[c].u_commands.count_q) != CommandDepth)
        && (dut.gen_channel[c].u_commands.count_q < 2 || (first && second))
        && (dut.gen_channel[c].u_commands.count_q == '0
            || (dut.gen_channel[c].u_commands.read_q == '0 ? first : second));
    assign free_ok[c] = 32'(dut.gen_channel[c].free_q) + 32'(dut.gen_channel[c].fifo_count)
                        + 32'(awaited[c]) == FifoBeats;
    assign room[c]    = !dut.gen_channel[c].fifo_push || dut.gen_channel[c].fifo_ready;
    assign state_ok[c] = 32'(dut.gen_channel[c].u_data.count_q) <= FifoBeats
        && 32'(dut.gen_channel[c].u_data.read_q) < FifoBeats
        && 32'(dut.gen_channel[c].u_data.write_q) ==
               (data_write >= FifoBeats ? data_write - FifoBeats : data_write)
        && (after_reset_q || dut.gen_channel[c].u_data.ready_q ==
                             (32'(dut.gen_channel[c].u_data.count_q) != FifoBeats))
        && (!dut.gen_channel[c].split_valid_q
            || (dut.gen_channel[c].split_left_q != '0
                && dut.gen_channel[c].split_addr_q[2:0] == '0))
        && (!dut.gen_channel[c].burst_valid_q
            || legal(dut.gen_channel[c].burst_addr_q, 32'(dut.gen_channel[c].burst_beats_q)));
  end

  // ------------------------------------------------------------ one command of channel 0 (`Quiet`)

  localparam logic [1:0] Queued = 2'd0, Splitting = 2'd1, Whole = 2'd2;
  logic        follow_q;
  logic [1:0]  place_q;     // Whole: all of it is in the burst register
  logic        slot_q;      // of the queue
  logic [63:0] next_q;      // address of the next word to be asked for
  logic [31:0] rest_q;      // words not yet asked for
  logic        burst_q;     // the burst register holds a burst of it

  logic cmd_in;
  logic taken;
  logic load;
  logic grant;
  logic last;
  assign cmd_in = cmd_valid_i[0] && cmd_ready[0];
  assign taken  = dut.gen_channel[0].command_pop && dut.gen_channel[0].command_valid;
  assign load   = dut.gen_channel[0].burst_load;
  assign grant  = dut.burst_grant[0];
  assign last   = dut.gen_channel[0].split_final;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      follow_q <= 1'b0;
    end else if (!follow_q) begin
      if (cmd_in && pick_i) begin
        follow_q <= 1'b1;
        place_q  <= Queued;
        slot_q   <= dut.gen_channel[0].u_commands.write_q[0];
        next_q   <= cmd_addr_i[0];
        rest_q   <= cmd_beats_i[0];
        burst_q  <= 1'b0;
      end
    end else begin
      if (place_q == Queued && taken && dut.gen_channel[0].u_commands.read_q[0] == slot_q) begin
        place_q <= Splitting;
      end
      if (place_q == Splitting && load) begin
        burst_q <= 1'b1;
        if (last) place_q <= Whole;
      end
      if (burst_q && grant) begin
        next_q <= next_q + 64'(dut.gen_channel[0].burst_beats_q) * 8;
        rest_q <= rest_q - 32'(dut.gen_channel[0].burst_beats_q);
        if (place_q == Whole) follow_q <= 1'b0;
        if (!(place_q == Splitting && load)) burst_q <= 1'b0;
      end
    end
  end

  logic [31:0] burst_words;
  assign burst_words = burst_q ? 32'(dut.gen_channel[0].burst_beats_q) : '0;

  // ------------------------------------------------------------------------------------ properties

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      if (cmd_valid_i[c]) assume (cmd_addr_i[c][2:0] == '0 && cmd_beats_i[c] != '0);
    end
    if (Quiet) assume (cancel_i == '0 && !flush_i);
    if (!Quiet) assume (!pick_i);
    // R answers what AR has asked for, with LAST on the last beat.
    if (m_r_valid_i) assume (sent > 2'(r_next) && m_r_last_i == (got_q + 1'b1 == r_beats));

    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      if (m_ar_valid) a_ar_legal: assert (legal(m_ar_addr, 32'(m_ar_len) + 1));
      if (m_ar_held_q) a_ar_stable: assert (m_ar_valid && {m_ar_addr, m_ar_len} == m_ar_q);
      if (flushed_q && m_ar_free_q) a_flush: assert (!m_ar_valid);
      a_outstanding: assert (32'(count_q) <= Outstanding);
      a_room:        assert (&room);
      if (!after_reset_q) a_r_ready: assert (m_r_ready);
      if (follow_q && burst_q && grant) begin
        a_in_order: assert (dut.burst_addr[0] == next_q);
        a_whole:    assert (32'(dut.burst_beats[0]) <= rest_q);
        a_final:    assert (dut.burst_final[0] == (32'(dut.burst_beats[0]) == rest_q));
      end
      if (follow_q && !burst_q && grant) a_before: assert (place_q != Whole);

      // What makes them inductive.
      i_free:  assert (&free_ok);
      i_state: assert (&state_ok);
      i_queue: assert (&queue_ok);
      i_order: assert (dut.u_order.count_q == count_q
                       && 32'(dut.u_order.read_q) < Outstanding
                       && 32'(dut.u_order.write_q) == order_write % Outstanding
                       && (!dut.u_order.ready_q || 32'(count_q) != Outstanding));
      if (count_q != '0) begin
        i_oldest: assert (dut.order_channel == channel_q[0] && left_q != '0
                          && 32'(beats_q[0]) <= BurstBeats && left_q <= beats_q[0]);
      end
      if (count_q > 1) begin
        i_next: assert (dut.u_order.gen_lut.u_ram.mem[!dut.u_order.read_q][0] == channel_q[1]
                        && beats_q[1] != '0 && 32'(beats_q[1]) <= BurstBeats);
      end
      if (count_q != '0 && !r_next) i_got: assert (got_q < beats_q[0]);
      i_sent: assert (count_q >= 2'(m_ar_valid));
      if (dut.r_valid_q) begin
        i_r_known: assert (count_q != '0 && sent != '0);
        i_r_last:  assert (dut.r_last_q ? left_q == 1 && got_q == '0
                                        : left_q == beats_q[0] - got_q + 1'b1 && got_q != '0);
      end else if (count_q != '0) begin
        i_r_left: assert (left_q == beats_q[0] - got_q && (got_q == '0 || sent != '0));
      end else begin
        i_r_none: assert (got_q == '0);
      end
      if (!Quiet) begin
        i_nothing: assert (!follow_q);
      end else begin
        i_quiet: assert (!dut.gen_channel[0].kill_q && !dut.gen_channel[0].void_q);
        if (follow_q) begin
          i_rest: assert (rest_q != '0 && next_q[2:0] == '0);
          if (place_q == Queued) begin
            i_queued: assert (!burst_q && dut.gen_channel[0].u_commands.gen_lut.u_ram.mem[slot_q]
                                          == {next_q, rest_q}
                && (dut.gen_channel[0].u_commands.count_q == 2
                    || (dut.gen_channel[0].u_commands.count_q == 1
                        && dut.gen_channel[0].u_commands.read_q[0] == slot_q)));
          end
          if (place_q == Splitting) begin
            i_splitting: assert (dut.gen_channel[0].split_valid_q
                && dut.gen_channel[0].split_addr_q == next_q + 64'(burst_words) * 8
                && dut.gen_channel[0].split_left_q == rest_q - burst_words
                && burst_words < rest_q);
          end
          if (place_q == Whole) i_last: assert (burst_q && burst_words == rest_q);
          if (burst_q) begin
            i_burst: assert (dut.gen_channel[0].burst_valid_q
                && dut.gen_channel[0].burst_addr_q == next_q
                && dut.gen_channel[0].burst_final_q == (place_q == Whole));
          end
          i_place: assert (place_q <= Whole);
        end
      end

      c_full:  cover (32'(dut.gen_channel[0].fifo_count) == FifoBeats);
      c_page:  cover (m_ar_valid && 32'(m_ar_len) + 1 < BurstBeats && m_ar_addr[11:3] == '1
                      && dut.gen_channel[1].split_valid_q);
      c_two:   cover (count_q == 2 && channel_q[0] != channel_q[1]);
      c_whole: cover (!Quiet || (follow_q && place_q == Whole && grant && next_q[12]));
      c_void:  cover (Quiet || (out_valid[0] && out_void[0]));
    end
  end

endmodule
