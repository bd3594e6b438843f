module.exports = class { id() { return 'agent'; }
 async callApi(prompt) {
  if (prompt.includes('crash')) throw new Error('the backend is gone');
  if (prompt.includes('broken')) return { output: 'I started a refund of $39', tokenUsage: {total: 30, prompt: 20, completion: 10}, cost: 0.001, raw: {a:1} };
  return { output: 'echo ' + prompt, tokenUsage: {total: 30, prompt: 20, completion: 10}, cost: 0.001 };
 } };
